"""The complete flow on a real Kubernetes: `make e2e`.

conftest           fixtures: `site` for the session, `namespace` for a test; what a failed test shows
site               `Site`: cluster, installed podferry, object store
namespace          `Namespace`: one namespace; creates objects and waits for their outcome
manifests          pods and Jobs as plain JSON
outcome            the outcome of a pod or a Job: phases, exit codes, messages, logs
bucket             objects of the test's own in the store, and podferry's verbs on them
store_proxy        another endpoint of the store, which holds and slows requests; proxy.py is its process
two_nodes          a cache on a cluster of two nodes, its source counted
scenarios          what happens to several pods in parallel
kfp_pods           KFP's pods, recorded or in that shape
pipeline_run       a compiled pipeline whose steps run in such pods; example_data.py is for the examples
trainers           scripts for trainers, and flags that release them
api_server         many requests to the API server
outages            what can happen to the webhook
install            image and manifests, as an administrator would
later_version      the image and the overlay of a later version
webhook_secret     changes of certificates and signing keys
documented_output  what kubectl shows, as docs/kubernetes.md shows it
measuring          control groups, processes, the API server's answers
figures            takes what was measured; build/e2e/figures.json
overlay/           the administrator's overlay
"""
