# Graphs with networkx: build, attributes, paths, centrality, subgraph views.
# %%
import networkx as nx

G = nx.Graph(name="towns")
G.add_weighted_edges_from([("a", "b", 4), ("b", "c", 3), ("a", "c", 8), ("c", "d", 2)])
# %%
G.nodes["a"]["hub"] = True
print(nx.shortest_path(G, "a", "d", weight="weight"), G.nodes(data=True))
# %%
part = G.subgraph(["a", "b", "c"])
neighbours = G["a"]
G.add_edge("b", "a2")
print(len(part.edges), list(neighbours))
# %%
G["a"]["b"]["weight"] = 1
print(part["a"]["b"]["weight"], neighbours["b"], nx.dijkstra_path_length(G, "a", "d"))
# %%
centrality = {k: round(v, 3) for k, v in nx.betweenness_centrality(G).items()}
centrality
# %%
D = nx.DiGraph([(1, 2), (2, 3), (1, 3), (3, 4)])
order = list(nx.topological_sort(D))
D.graph["order"] = order
order.append("end")
D.graph
# %%
random_graph = nx.gnp_random_graph(12, 0.3, seed=4)
communities = sorted(map(sorted, nx.connected_components(random_graph)))
len(communities), nx.density(random_graph).__round__(3)
# %%
def relabel(graph, prefix="n"):
    return nx.relabel_nodes(graph, {n: f"{prefix}{n}" for n in graph})
named = relabel(random_graph)
view = nx.reverse_view(D)
list(view.edges)
# %%
D.remove_node(4)
print(list(view.edges), sorted(named)[:3], named.number_of_edges())
# %%
tree = nx.minimum_spanning_tree(G)
paths = dict(nx.all_pairs_shortest_path_length(D))
print(sorted(tree.edges(data="weight")), paths)
