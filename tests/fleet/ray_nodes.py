"""A Ray of several nodes on this machine, in a Python that has it: ``python ray_nodes.py DIRECTORY NAME=GPUS...``.

It prints the address when all nodes are there. A name on stdin ends that node as if the machine were switched off; the
end of stdin ends all.
"""

import sys

from ray.cluster_utils import Cluster

directory, *named = sys.argv[1:]
head = {"num_cpus": 1, "node_name": "head", "include_dashboard": False, "temp_dir": directory}
cluster = Cluster(initialize_head=True, head_node_args=head)
nodes = {}
for it in named:
    name, _, gpus = it.partition("=")
    nodes[name] = cluster.add_node(num_cpus=1, num_gpus=int(gpus), node_name=name)
sys.stdout.write(f"{cluster.address}\n")
sys.stdout.flush()
for line in sys.stdin:
    cluster.remove_node(nodes.pop(line.strip()), allow_graceful=False)
    sys.stdout.write("ended\n")
    sys.stdout.flush()
cluster.shutdown()
