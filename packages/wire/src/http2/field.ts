/** What the server does with a field, told by its name once and not for every request. */
export const roles = {
  /** Read by nobody. */
  other: 0,
  /** No request may have it. */
  malformed: 1,
  /** One of the pseudo-header fields. */
  pseudo: 2,
  length: 3,
  /** Someone reads it. */
  kept: 4,
} as const;

export type Role = (typeof roles)[keyof typeof roles];

const rolesByName: ReadonlyMap<string, Role> = new Map<string, Role>([
  [':method', roles.pseudo],
  [':scheme', roles.pseudo],
  [':path', roles.pseudo],
  [':authority', roles.pseudo],
  ['content-length', roles.length],
  ['content-type', roles.kept],
  ['grpc-timeout', roles.kept],
  ['grpc-encoding', roles.kept],
  ['x-api-key', roles.kept],
  ['authorization', roles.kept],
  // These belong to HTTP/1.1 and to no connection of ours.
  ['connection', roles.malformed],
  ['keep-alive', roles.malformed],
  ['proxy-connection', roles.malformed],
  ['transfer-encoding', roles.malformed],
  ['upgrade', roles.malformed],
]);

const overheadBytes = 32;

/** One header field, with its size as RFC 7541 counts it. */
export class Field {
  readonly bytes: number;
  readonly role: Role;

  constructor(
    readonly name: string,
    readonly value: string,
  ) {
    this.bytes = name.length + value.length + overheadBytes;
    this.role = roleOf(name, value);
  }
}

// Tokens without capitals.
const nameForm = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
// No control characters but tabs, no blanks at the ends.
const valueForm = /^(?:[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?$/;

function roleOf(name: string, value: string): Role {
  if (!valueForm.test(value)) return roles.malformed;
  const role = rolesByName.get(name);
  if (role !== undefined) return role;
  if (name === 'te' && value !== 'trailers') return roles.malformed;
  return nameForm.test(name) ? roles.other : roles.malformed;
}
