/**
 * Finds the path template that a request's path belongs to.
 *
 * Templates of ours may end in a verb, as `/v1/admin/queues/{queue}:pause` does. The path is
 * therefore matched as it was sent, before percent-decoding: a `:` that stands for itself in the
 * last segment always starts a verb and a name that holds one is written `%3A`, so `a%3Apause` is
 * a name and can never be taken for the verb. In front of a `/` there are no verbs, and a name
 * with a `:` reaches whoever can say what is wrong with it.
 *
 * The last parameter of a template may take all that is left of the path, slashes and verbs
 * included. It is handed over as it was sent, for only its reader knows how to take it apart.
 */
export class PathRouter<Leaf> {
  readonly #fixed = new Map<string, Leaf>();
  readonly #root: Branch<Leaf> = newBranch();
  readonly #options: RouterOptions;

  constructor(options: RouterOptions = {}) {
    this.#options = options;
  }

  /**
   * `rest` names the parameter that takes all that is left of the path. Throws when another
   * template already stands for the same paths.
   */
  add(template: string, leaf: Leaf, rest?: string): void {
    if (!template.startsWith('/')) throw new Error(`Path ${template} must start with "/"`);
    const segments = template.slice(1).split('/').map(parseSegment);
    if (rest !== undefined) checkRest(template, segments, rest);
    let branch = this.#root;
    for (const segment of segments) branch = childFor(branch, segment, rest);
    if (branch.leaf !== undefined) {
      throw new Error(`Path ${template} stands for the same requests as ${branch.template}`);
    }
    branch.leaf = leaf;
    branch.template = template;
    branch.names = segments.flatMap((segment) => segment.name ?? []);
    if (branch.names.length === 0) this.#fixed.set(template, leaf);
  }

  /** `path` is the raw path of the request, without its query. */
  find(path: string): RouteMatch<Leaf> | undefined {
    const fixed = this.#fixed.get(path);
    if (fixed !== undefined) return { leaf: fixed, params: noParams };
    const values: string[] = [];
    const branch = descend(this.#root, path, 1, values, this.#options.isLiteral ?? false);
    if (!branch) return undefined;
    const params: Record<string, string> = {};
    for (let i = 0; i < values.length; i++) {
      const name = branch.names[i]!;
      const value = branch.isRest && i === values.length - 1 ? values[i] : decodeValue(values[i]!);
      if (value === undefined) {
        const refusal = this.#options.undecodable?.(name);
        if (refusal) throw refusal;
        return undefined;
      }
      params[name] = value;
    }
    return { leaf: branch.leaf!, params };
  }
}

export interface RouterOptions {
  /** Fixed segments match as they are spelled alone, and a `:` starts a verb in every segment. */
  isLiteral?: boolean;
  /** The refusal of a parameter that is not UTF-8; without it such a path matches nothing. */
  undecodable?: (name: string) => Error;
}

export interface RouteMatch<Leaf> {
  leaf: Leaf;
  params: Readonly<Record<string, string>>;
}

interface Branch<Leaf> {
  leaf: Leaf | undefined;
  template: string;
  names: readonly string[];
  fixed: Map<string, Branch<Leaf>>;
  named: { prefix: string; suffix: string; branch: Branch<Leaf> }[];
  /** Where everything below this place goes that nothing else takes. */
  rest: Branch<Leaf> | undefined;
  /** True when the last of `names` takes all that is left of a path. */
  isRest: boolean;
}

interface Segment {
  /** The whole segment when it has no parameter. */
  fixed: string;
  name: string | undefined;
  prefix: string;
  suffix: string;
}

const noParams: Readonly<Record<string, string>> = Object.freeze({});
const parameter = /^([^{}]*)\{([^{}]+)\}([^{}]*)$/;
const encodedPlainCharacter = /%(?:2[DE]|3\d|4[1-9A-F]|5[\dAF]|6[1-9A-F]|7[\dAE])/gi;

function newBranch<Leaf>(): Branch<Leaf> {
  return {
    leaf: undefined,
    template: '',
    names: [],
    fixed: new Map(),
    named: [],
    rest: undefined,
    isRest: false,
  };
}

function checkRest(template: string, segments: readonly Segment[], rest: string): void {
  const last = segments.at(-1)!;
  if (last.name === rest && last.prefix === '' && last.suffix === '') return;
  throw new Error(`Path ${template} must end in /{${rest}}, which takes the rest of a path`);
}

function parseSegment(text: string): Segment {
  if (!text.includes('{') && !text.includes('}')) {
    return { fixed: text, name: undefined, prefix: '', suffix: '' };
  }
  const match = parameter.exec(text);
  if (!match) throw new Error(`Path segment ${text} must hold one {parameter}`);
  return { fixed: '', name: match[2]!, prefix: match[1]!, suffix: match[3]! };
}

function childFor<Leaf>(
  branch: Branch<Leaf>,
  segment: Segment,
  rest: string | undefined,
): Branch<Leaf> {
  if (segment.name === undefined) {
    let child = branch.fixed.get(segment.fixed);
    if (!child) branch.fixed.set(segment.fixed, (child = newBranch()));
    return child;
  }
  if (segment.name === rest) {
    branch.rest ??= { ...newBranch<Leaf>(), isRest: true };
    return branch.rest;
  }
  const { prefix, suffix } = segment;
  const known = branch.named.find((named) => named.prefix === prefix && named.suffix === suffix);
  if (known) return known.branch;
  const child = newBranch<Leaf>();
  branch.named.push({ prefix, suffix, branch: child });
  // The more of a segment is literal, the earlier it is tried.
  branch.named.sort(
    (a, b) => b.prefix.length + b.suffix.length - a.prefix.length - a.suffix.length,
  );
  return child;
}

function descend<Leaf>(
  branch: Branch<Leaf>,
  path: string,
  start: number,
  values: string[],
  isLiteral: boolean,
): Branch<Leaf> | undefined {
  if (start > path.length) return branch.leaf === undefined ? undefined : branch;
  const slash = path.indexOf('/', start);
  const end = slash === -1 ? path.length : slash;
  const segment = path.slice(start, end);

  const fixed = branch.fixed.get(isLiteral ? segment : plainSpelling(segment));
  if (fixed) {
    const found = descend(fixed, path, end + 1, values, isLiteral);
    if (found) return found;
  }
  for (const { prefix, suffix, branch: child } of branch.named) {
    const value = valueBetween(segment, prefix, suffix);
    const hasVerb = (isLiteral || slash === -1) && value.includes(':');
    if (value === '' || hasVerb) continue;
    values.push(value);
    const found = descend(child, path, end + 1, values, isLiteral);
    if (found) return found;
    values.pop();
  }
  if (!branch.rest || start === path.length) return undefined;
  values.push(path.slice(start));
  return branch.rest;
}

function valueBetween(segment: string, prefix: string, suffix: string): string {
  if (!segment.startsWith(prefix) || !segment.endsWith(suffix)) return '';
  if (segment.length <= prefix.length + suffix.length) return '';
  return segment.slice(prefix.length, segment.length - suffix.length);
}

/** `%71ueues` is `queues` (RFC 3986, 6.2.2.2), while `%3A` and `%2F` stay what they are. */
function plainSpelling(segment: string): string {
  if (!segment.includes('%')) return segment;
  return segment.replace(encodedPlainCharacter, (code) => decodeURIComponent(code));
}

function decodeValue(value: string): string | undefined {
  if (!value.includes('%')) return value;
  try {
    return decodeURIComponent(value);
  } catch {
    // No UTF-8 behind the percent signs: such a path names nothing.
    return undefined;
  }
}
