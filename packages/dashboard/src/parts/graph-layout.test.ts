import { expect, test } from 'vitest';
import { layoutGraph } from './graph-layout.js';

const node = (id: string, ...after: string[]) => ({ id, after });

test('layoutGraph: a node is one layer after its last dependency', () => {
  const { nodes, edges, layers, breadth } = layoutGraph([
    node('build'),
    node('test', 'build'),
    node('lint'),
    node('ship', 'test', 'lint'),
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

test('layoutGraph: nodes are next to their dependencies, so that lines do not cross', () => {
  const { nodes } = layoutGraph([node('a'), node('b'), node('of-b', 'b'), node('of-a', 'a')]);
  const place = Object.fromEntries(nodes.map(({ id, place }) => [id, place]));
  expect(place['of-a']).toBe(place['a']);
  expect(place['of-b']).toBe(place['b']);
});

test('layoutGraph: a line over several layers passes where no node is', () => {
  const { nodes, edges, breadth } = layoutGraph([
    node('a'),
    node('b', 'a'),
    node('c', 'b'),
    node('d', 'c', 'a'),
    node('e', 'd', 'a'),
  ]);
  const taken = new Set(nodes.map(({ layer, place }) => `${layer}:${place}`));
  const passed = edges.map(({ via }) => via.map(({ layer, place }) => `${layer}:${place}`));
  // Both long lines of `a` share the places on their way.
  expect(passed).toEqual([[], [], [], ['1:1', '2:1'], [], ['1:1', '2:1', '3:1']]);
  expect(passed.flat().filter((each) => taken.has(each))).toEqual([]);
  expect([passed.flat().length, breadth]).toEqual([5, 2]);
});

test('layoutGraph: no two nodes overlap', () => {
  const items = Array.from({ length: 40 }, (_, n) =>
    node(`j${n}`, ...[n - 3, n - 7].filter((k) => k >= 0).map((k) => `j${k}`)),
  );
  const { nodes } = layoutGraph(items);
  expect(new Set(nodes.map(({ layer, place }) => `${layer}:${place}`)).size).toBe(40);
});

test('layoutGraph: accepts cycles, unknown dependencies and an empty list', () => {
  expect(layoutGraph([node('a', 'b'), node('b', 'a', 'nobody')]).nodes).toHaveLength(2);
  expect(layoutGraph([])).toEqual({ nodes: [], edges: [], layers: 0, breadth: 0 });
});

test('layoutGraph: handles a long chain', () => {
  const items = Array.from({ length: 200 }, (_, n) =>
    node(`j${n}`, ...(n > 0 ? [`j${n - 1}`] : [])),
  );
  expect(layoutGraph(items.toReversed()).layers).toBe(200);
});
