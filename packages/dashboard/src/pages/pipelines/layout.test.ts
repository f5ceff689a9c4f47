import { expect, test } from 'vitest';
import { layoutDag } from './layout.js';

const job = (id: string, ...depends_on: string[]) => ({ id, depends_on });

test('layoutDag: a job is one layer after its last dependency', () => {
  const { nodes, edges, layers, breadth } = layoutDag([
    job('build'),
    job('test', 'build'),
    job('lint'),
    job('ship', 'test', 'lint'),
  ]);
  expect(Object.fromEntries(nodes.map(({ id, layer }) => [id, layer]))).toEqual({
    build: 0,
    lint: 0,
    test: 1,
    ship: 2,
  });
  expect(edges).toHaveLength(3);
  expect([layers, breadth]).toEqual([3, 2]);
});

test('layoutDag: jobs are next to their dependencies, so that lines do not cross', () => {
  const { nodes } = layoutDag([job('a'), job('b'), job('of-b', 'b'), job('of-a', 'a')]);
  const place = Object.fromEntries(nodes.map(({ id, place }) => [id, place]));
  expect(place['of-a']).toBe(place['a']);
  expect(place['of-b']).toBe(place['b']);
});

test('layoutDag: no two jobs overlap', () => {
  const jobs = Array.from({ length: 40 }, (_, n) =>
    job(`j${n}`, ...[n - 3, n - 7].filter((k) => k >= 0).map((k) => `j${k}`)),
  );
  const { nodes } = layoutDag(jobs);
  expect(new Set(nodes.map(({ layer, place }) => `${layer}:${place}`)).size).toBe(40);
});

test('layoutDag: accepts cycles, unknown dependencies and an empty list', () => {
  expect(layoutDag([job('a', 'b'), job('b', 'a', 'nobody')]).nodes).toHaveLength(2);
  expect(layoutDag([])).toEqual({ nodes: [], edges: [], layers: 0, breadth: 0 });
});

test('layoutDag: handles a long chain', () => {
  const jobs = Array.from({ length: 200 }, (_, n) => job(`j${n}`, ...(n > 0 ? [`j${n - 1}`] : [])));
  expect(layoutDag(jobs.toReversed()).layers).toBe(200);
});
