import { nearest } from '@millrace/kit/nearest';
import type { FieldError } from '@millrace/kit/errors';
import { fail } from './api.js';

/* Items that depend on one another by their ids: jobs of pipelines and tasks of plans. */

export interface GraphItem {
  id: string;
  depends_on?: readonly string[] | undefined;
}

/** How the items are called in messages and pointers: `/jobs/0/id`. */
export interface GraphWords {
  list: string;
  item: string;
  id: string;
}

/** Repeated ids, unknown dependencies, or a cycle, each with its place. */
export function graphFaults(items: readonly GraphItem[], words: GraphWords): FieldError[] {
  const errors = [...repeatedIds(items, words), ...unknownDependencies(items, words)];
  return errors.length > 0 ? errors : cycles(items, words);
}

function repeatedIds(items: readonly GraphItem[], words: GraphWords): FieldError[] {
  const first = new Map<string, number>();
  const errors: FieldError[] = [];
  for (const [index, { id }] of items.entries()) {
    const before = first.get(id);
    if (before === undefined) first.set(id, index);
    else {
      const { list, item, id: name } = words;
      const message = `is also the ${name} of /${list}/${before}: give each ${item} a unique ${name}`;
      errors.push({ pointer: `/${list}/${index}/${name}`, message });
    }
  }
  return errors;
}

function unknownDependencies(items: readonly GraphItem[], words: GraphWords): FieldError[] {
  const ids = new Set(items.map(({ id }) => id));
  return items.flatMap(({ depends_on = [] }, index) =>
    depends_on.flatMap((id, at) => {
      if (ids.has(id)) return [];
      const message = `names the ${words.item} "${id}", which does not exist${meant(id, ids)}`;
      return [{ pointer: `/${words.list}/${index}/depends_on/${at}`, message }];
    }),
  );
}

/** `; did you mean build?`, or nothing. */
export function meant(name: string, known: Iterable<string>): string {
  const found = nearest(name, [...known]);
  return found === undefined ? '' : `; did you mean ${found}?`;
}

/** Topological sort: removes items without open dependencies; the remaining ones form a cycle. */
function cycles(items: readonly GraphItem[], { list }: GraphWords): FieldError[] {
  const waitsFor = new Map(items.map(({ id, depends_on = [] }) => [id, new Set(depends_on)]));
  const followers = new Map<string, string[]>(items.map(({ id }) => [id, []]));
  for (const { id, depends_on = [] } of items) {
    for (const before of depends_on) followers.get(before)!.push(id);
  }
  const free = items.filter(({ id }) => waitsFor.get(id)!.size === 0).map(({ id }) => id);
  for (let id = free.pop(); id !== undefined; id = free.pop()) {
    waitsFor.delete(id);
    for (const follower of followers.get(id)!) {
      const left = waitsFor.get(follower)!;
      left.delete(id);
      if (left.size === 0) free.push(follower);
    }
  }
  const circle = circleIn(waitsFor);
  if (circle.length === 0) return [];
  const index = items.findIndex(({ id }) => id === circle[0]);
  const message = `is a cycle: ${[...circle, circle[0]].join(' -> ')}`;
  return [{ pointer: `/${list}/${index}/depends_on`, message }];
}

/** Every remaining item depends on another one, so following dependencies finds the cycle. */
function circleIn(waitsFor: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const [start] = waitsFor.keys();
  if (start === undefined) return [];
  const path: string[] = [];
  let here = start;
  while (!path.includes(here)) {
    path.push(here);
    here = [...waitsFor.get(here)!].find((id) => waitsFor.has(id))!;
  }
  return path.slice(path.indexOf(here));
}

/** All direct and transitive dependencies of each item; the graph has no cycle. */
export function ancestorsOf(items: readonly GraphItem[]): Map<string, Set<string>> {
  const byId = new Map(items.map((item) => [item.id, item]));
  const found = new Map<string, Set<string>>();
  const visit = (id: string): Set<string> => {
    const known = found.get(id);
    if (known) return known;
    const all = new Set<string>();
    for (const each of byId.get(id)!.depends_on ?? []) {
      all.add(each);
      for (const far of visit(each)) all.add(far);
    }
    found.set(id, all);
    return all;
  };
  for (const { id } of items) visit(id);
  return found;
}

/** The refusal of several fields of a request. */
export function invalidFields(errors: readonly FieldError[]): Error {
  const [{ pointer, message }] = errors as [FieldError];
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
  return fail('INVALID_REQUEST', `${pointer} ${message}${more}.`, { errors });
}
