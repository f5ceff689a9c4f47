/** The fields of a node that the layout needs. */
export interface GraphItem {
  id: string;
  /** Ids of the nodes that come before this one; others are ignored. */
  after: readonly string[];
}

export interface PlacedNode {
  id: string;
  /** Length of its longest chain of predecessors. */
  layer: number;
  /** Its position within the layer. */
  place: number;
}

export interface GraphLayout {
  nodes: PlacedNode[];
  /** `via`: free places in the layers between, so that no line runs behind a node. */
  edges: (Edge & { via: PlacedNode[] })[];
  layers: number;
  /** The maximum number of places in one layer. */
  breadth: number;
}

interface Edge {
  from: string;
  to: string;
}

/** Beyond it lines run straight. */
const maxFreePlaces = 5_000;

/**
 * Puts each node one layer after its last predecessor, and close to its predecessors within the
 * layer so that few lines cross. Servers reject cycles; here a cycle is cut, not followed.
 */
export function layoutGraph(items: readonly GraphItem[]): GraphLayout {
  const known = new Set(items.map(({ id }) => id));
  const edges = items.flatMap(({ id, after }) =>
    after.filter((from) => known.has(from)).map((from) => ({ from, to: id })),
  );
  const layers: GraphItem[][] = [];
  const layerOf = layersOf(items, edges);
  for (const item of items) (layers[layerOf.get(item.id)!] ??= []).push(item);
  addFreePlaces(layers, edges, layerOf);
  const placeOf = new Map<string, number>();
  for (const layer of layers) {
    const preferred = new Map(
      layer.map((item, index) => [item.id, middle(item, placeOf) ?? index]),
    );
    layer.sort((a, b) => preferred.get(a.id)! - preferred.get(b.id)!);
    for (const [index, { id }] of layer.entries()) placeOf.set(id, index);
  }
  const viaOf = ({ from, to }: Edge) => {
    const via: PlacedNode[] = [];
    for (let layer = layerOf.get(from)! + 1; layer < layerOf.get(to)!; layer++) {
      const id = freePlace(from, layer);
      const place = placeOf.get(id);
      if (place !== undefined) via.push({ id, layer, place });
    }
    return via;
  };
  return {
    nodes: items.map(({ id }) => ({ id, layer: layerOf.get(id)!, place: placeOf.get(id)! })),
    edges: edges.map((edge) => ({ ...edge, via: viaOf(edge) })),
    layers: layers.length,
    breadth: layers.reduce((most, { length }) => Math.max(most, length), 0),
  };
}

const freePlace = (from: string, layer: number) => `${from}\n${layer}`;

/** One place for all lines of a node in each layer that they pass. */
function addFreePlaces(
  layers: GraphItem[][],
  edges: readonly Edge[],
  layerOf: ReadonlyMap<string, number>,
): void {
  const ends = new Map<string, number>();
  for (const { from, to } of edges) {
    ends.set(from, Math.max(ends.get(from) ?? 0, layerOf.get(to)!));
  }
  const added = Array.from(ends, ([from, end]): [number, GraphItem][] => {
    const first = layerOf.get(from)! + 1;
    return Array.from({ length: Math.max(0, end - first) }, (_, n) => {
      const before = n === 0 ? from : freePlace(from, first + n - 1);
      return [first + n, { id: freePlace(from, first + n), after: [before] }];
    });
  }).flat();
  if (added.length > maxFreePlaces) return;
  for (const [layer, item] of added) layers[layer]!.push(item);
}

function layersOf(
  items: readonly GraphItem[],
  edges: readonly Edge[],
): ReadonlyMap<string, number> {
  const open = new Map(items.map(({ id }) => [id, 0]));
  const next = new Map<string, string[]>();
  for (const { from, to } of edges) {
    open.set(to, open.get(to)! + 1);
    const list = next.get(from);
    if (list) list.push(to);
    else next.set(from, [to]);
  }
  const layerOf = new Map(items.map(({ id }) => [id, 0]));
  const ready = items.filter(({ id }) => open.get(id) === 0).map(({ id }) => id);
  for (let id; (id = ready.pop()) !== undefined;) {
    for (const to of next.get(id) ?? []) {
      layerOf.set(to, Math.max(layerOf.get(to)!, layerOf.get(id)! + 1));
      open.set(to, open.get(to)! - 1);
      if (open.get(to) === 0) ready.push(to);
    }
  }
  return layerOf;
}

function middle({ after }: GraphItem, placeOf: ReadonlyMap<string, number>): number | undefined {
  const places = after.map((id) => placeOf.get(id)).filter((place) => place !== undefined);
  if (places.length === 0) return undefined;
  return places.reduce((sum, place) => sum + place, 0) / places.length;
}
