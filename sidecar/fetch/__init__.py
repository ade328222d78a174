"""The download engine: fetches planned ranges of objects into verified files of the stage, resumably."""
