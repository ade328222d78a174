"""The whole flow on a real Kubernetes: `make e2e`.

conftest     fixtures: `site` for the session, `space` for a test; what a failed test shows
site         `Site`: cluster, installed podferry, object store
space        `Space`: one namespace; creates objects and waits for what becomes of them
manifests    pods and Jobs as plain JSON
outcome      what became of a pod or a Job: phases, exit codes, messages, logs
bucket       objects of the test's own in the store, and podferry's verbs on them
door, proxy  another endpoint of the store, where requests are held and slowed
stories      what happens to several pods at once
trainers     trainers that a test leads through their lives
install      image and manifests, as an administrator would
seen         what kubectl shows, as docs/kubernetes.md shows it
measuring    control groups, processes, the API server's answers
figures      takes what was measured; build/e2e/figures.json
overlay/     the administrator's overlay
"""
