/** The fields of a job that the layout needs. */
export interface DagJob {
  id: string;
  depends_on: readonly string[];
}

export interface DagNode {
  id: string;
  /** Length of its longest dependency chain. */
  layer: number;
  /** Its position within the layer. */
  place: number;
}

export interface DagLayout {
  nodes: DagNode[];
  edges: { from: string; to: string }[];
  layers: number;
  /** The maximum number of jobs in one layer. */
  breadth: number;
}

/**
 * Puts each job one layer after its last dependency, and close to its dependencies within the layer
 * so that few lines cross. The daemon rejects cycles; here a cycle is cut, not followed.
 */
export function layoutDag(jobs: readonly DagJob[]): DagLayout {
  const byId = new Map(jobs.map((job) => [job.id, job]));
  const layerOf = new Map<string, number>();
  const visit = (job: DagJob, above: ReadonlySet<string>): number => {
    const known = layerOf.get(job.id);
    if (known !== undefined) return known;
    const path = new Set(above).add(job.id);
    let layer = 0;
    for (const id of job.depends_on) {
      const before = byId.get(id);
      if (before && !path.has(id)) layer = Math.max(layer, visit(before, path) + 1);
    }
    layerOf.set(job.id, layer);
    return layer;
  };
  for (const job of jobs) visit(job, new Set());
  const layers: DagJob[][] = [];
  for (const job of jobs) (layers[layerOf.get(job.id)!] ??= []).push(job);
  const placeOf = new Map<string, number>();
  for (const layer of layers) {
    const preferred = new Map(layer.map((job, index) => [job.id, middle(job, placeOf) ?? index]));
    layer.sort((a, b) => preferred.get(a.id)! - preferred.get(b.id)!);
    for (const [index, job] of layer.entries()) placeOf.set(job.id, index);
  }
  return {
    nodes: jobs.map(({ id }) => ({ id, layer: layerOf.get(id)!, place: placeOf.get(id)! })),
    edges: jobs.flatMap((job) =>
      job.depends_on.filter((id) => byId.has(id)).map((from) => ({ from, to: job.id })),
    ),
    layers: layers.length,
    breadth: Math.max(0, ...layers.map((layer) => layer.length)),
  };
}

function middle({ depends_on }: DagJob, placeOf: ReadonlyMap<string, number>): number | undefined {
  const places = depends_on.map((id) => placeOf.get(id)).filter((place) => place !== undefined);
  if (places.length === 0) return undefined;
  return places.reduce((sum, place) => sum + place, 0) / places.length;
}
