"""Random faults against the agent, with real writers: is a checkpoint whole, or not there at all?"""
