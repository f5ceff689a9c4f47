import { dbRoutes, type DbRoute } from '@millrace/contract/db';
import { refuse } from '../../engine/refusal.js';
import { badField } from '../service/values.js';

export interface FoundRoute {
  /** The bindings of the path, by HTTP method. */
  readonly methods: ReadonlyMap<string, DbRoute>;
  /** What stands in the path, by the name of the field. */
  readonly fields: Readonly<Record<string, string>>;
}

/** One segment of a path: fixed, or a field with perhaps a verb behind it. */
interface Segment {
  readonly fixed: string;
  readonly field: string;
  readonly verb: string;
}

interface Template {
  readonly segments: readonly Segment[];
  readonly methods: Map<string, DbRoute>;
}

/**
 * Finds the bindings of a path. It is matched as it was sent, before percent-decoding: a `:` that
 * stands for itself always begins a verb, and a key that has one is written `%3A`.
 */
export class RouteTable {
  readonly #byLength = new Map<number, Template[]>();

  constructor(routes: readonly DbRoute[] = dbRoutes) {
    const templates = new Map<string, Template>();
    for (const route of routes) {
      let template = templates.get(route.path);
      if (!template) {
        const segments = route.path.slice(1).split('/').map(parseSegment);
        template = { segments, methods: new Map() };
        templates.set(route.path, template);
        const length = segments.length;
        this.#byLength.set(length, [...(this.#byLength.get(length) ?? []), template]);
      }
      template.methods.set(route.method, route);
    }
  }

  find(path: string): FoundRoute | undefined {
    const sent = path.slice(1).split('/');
    for (const { segments, methods } of this.#byLength.get(sent.length) ?? []) {
      const fields = match(segments, sent);
      if (fields) return { methods, fields };
    }
    return undefined;
  }
}

function parseSegment(text: string): Segment {
  const found = /^\{(\w+)\}(:\w+)?$/.exec(text);
  if (!found) return { fixed: text, field: '', verb: '' };
  return { fixed: '', field: found[1]!, verb: found[2] ?? '' };
}

function match(
  segments: readonly Segment[],
  sent: readonly string[],
): Record<string, string> | undefined {
  // Fixed parts first, for they decide; decoding is only for the one that fits.
  for (let i = 0; i < segments.length; i++) {
    const { fixed, verb } = segments[i]!;
    const given = sent[i]!;
    if (fixed !== '') {
      if (fixed !== given) return undefined;
      continue;
    }
    const colon = given.indexOf(':');
    if ((colon === -1 ? '' : given.slice(colon)) !== verb) return undefined;
    if (given.length === verb.length) return undefined;
  }
  const fields: Record<string, string> = {};
  for (let i = 0; i < segments.length; i++) {
    const { field, verb } = segments[i]!;
    if (field === '') continue;
    const given = sent[i]!;
    fields[field] = decode(field, given.slice(0, given.length - verb.length));
  }
  return fields;
}

function decode(field: string, text: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    throw badField(field, 'is not UTF-8 behind its percent signs');
  }
}

export function noSuchRoute(path: string): Error {
  const last = path.slice(path.lastIndexOf('/') + 1);
  // The likely cause, for keys such as user:1 are common.
  const hint = last.includes(':') ? ' A ":" in a key is sent as %3A.' : '';
  return refuse('NO_SUCH_ROUTE', `Nothing is served at this path; see /docs.${hint}`);
}
