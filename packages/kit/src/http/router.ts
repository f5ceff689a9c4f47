/**
 * Finds the path template of a request path.
 *
 * Templates may end in a verb, such as `/v1/admin/queues/{queue}:pause`. The path is therefore
 * matched before percent-decoding: a literal `:` in the last segment always starts a verb, and a
 * name that contains one is written with `%3A`, so `a%3Apause` is a name. There are no verbs before
 * a `/`: a name with `:` there reaches the handler, which rejects it.
 *
 * The last parameter of a template may match the rest of the path, including slashes and verbs. It
 * is not decoded.
 */
export class PathRouter<Leaf> {
  readonly #fixed = new Map<string, Leaf>();
  readonly #root: Branch<Leaf> = newBranch();
  readonly #options: RouterOptions;

  constructor(options: RouterOptions = {}) {
    this.#options = options;
  }

  /**
   * `rest` names the parameter that matches the rest of the path. Throws when another template
   * matches the same paths.
   */
  add(template: string, leaf: Leaf, rest?: string): void {
    if (!template.startsWith('/')) throw new Error(`Path ${template} must start with "/"`);
    const segments = template.slice(1).split('/').map(parseSegment);
    if (rest !== undefined) checkRest(template, segments, rest);
    let branch = this.#root;
    for (const segment of segments) branch = childFor(branch, segment, rest);
    if (branch.leaf !== undefined) {
      throw new Error(`Path ${template} matches the same requests as ${branch.template}`);
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
  /** Fixed segments match literally only, and a `:` starts a verb in every segment. */
  isLiteral?: boolean;
  /** The error for a parameter that is not UTF-8; without it such a path does not match. */
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
  /** Matches everything below that no other branch matches. */
  rest: Branch<Leaf> | undefined;
  /** True when the last of `names` matches the rest of the path. */
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
  throw new Error(`Path ${template} must end in /{${rest}}, which matches the rest of the path`);
}

function parseSegment(text: string): Segment {
  if (!text.includes('{') && !text.includes('}')) {
    return { fixed: text, name: undefined, prefix: '', suffix: '' };
  }
  const match = parameter.exec(text);
  if (!match) throw new Error(`Path segment ${text} must contain one {parameter}`);
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
  // Segments with longer literal parts are tried first.
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

/** `%71ueues` is `queues` (RFC 3986, 6.2.2.2); `%3A` and `%2F` are not decoded. */
function plainSpelling(segment: string): string {
  if (!segment.includes('%')) return segment;
  return segment.replace(encodedPlainCharacter, (code) => decodeURIComponent(code));
}

function decodeValue(value: string): string | undefined {
  if (!value.includes('%')) return value;
  try {
    return decodeURIComponent(value);
  } catch {
    // Not UTF-8: such a path matches nothing.
    return undefined;
  }
}
