"""Code that ships with the job: a folder of scripts is a second dataset."""
