"""A real Kubernetes for the end-to-end tests: `python -m tests.cluster up`.

__main__     the commands
cluster      `Cluster`, what tests hold; chooses among three backends:
given          the cluster that `KUBECONFIG` names
kind           kind, if a Docker engine responds
node           the same Kubernetes from Go modules, in its own namespaces, if none does
  supervisor     the first process in those namespaces; it starts the parts
  namespaces     mounts and networks of the nodes
  components     their command lines
  configs        their configuration files
  cgroups        their control groups
  build          their binaries, built once and cached
image        the base image, and Dockerfile builds without a Docker engine
  archive        images written by hand
packages     what Debian has to provide
layout       names, paths and addresses
process      running, identifying and ending processes

test_parts      the harness's logic, without a cluster
test_harness    a real cluster works
test_two_nodes  one of two nodes works, and leaves nothing
test_lifecycle  it survives being killed, and leaves nothing
  helpers, traces  what these share
"""
