/** How the server treats a field, determined once per field name. */
export const roles = {
  /** Ignored. */
  other: 0,
  /** Not allowed in a request. */
  malformed: 1,
  /** One of the pseudo-header fields. */
  pseudo: 2,
  length: 3,
  /** Read by the server. */
  stored: 4,
} as const;

export type Role = (typeof roles)[keyof typeof roles];

const rolesByName: ReadonlyMap<string, Role> = new Map<string, Role>([
  [':method', roles.pseudo],
  [':scheme', roles.pseudo],
  [':path', roles.pseudo],
  [':authority', roles.pseudo],
  ['content-length', roles.length],
  ['content-type', roles.stored],
  ['grpc-timeout', roles.stored],
  ['grpc-encoding', roles.stored],
  ['x-api-key', roles.stored],
  ['authorization', roles.stored],
  // Connection-specific fields are malformed in HTTP/2 (RFC 9113, 8.2.2).
  ['connection', roles.malformed],
  ['keep-alive', roles.malformed],
  ['proxy-connection', roles.malformed],
  ['transfer-encoding', roles.malformed],
  ['upgrade', roles.malformed],
]);

const overheadBytes = 32;

/** One header field, with its size by RFC 7541, 4.1. */
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

// Lowercase tokens.
const nameForm = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
// No control characters except tabs, no leading or trailing whitespace.
const valueForm = /^(?:[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?$/;

function roleOf(name: string, value: string): Role {
  if (!valueForm.test(value)) return roles.malformed;
  const role = rolesByName.get(name);
  if (role !== undefined) return role;
  if (name === 'te' && value !== 'trailers') return roles.malformed;
  return nameForm.test(name) ? roles.other : roles.malformed;
}
