/** Replaces secrets in output and logs. */
export const hidden = '[hidden]';

// Plurals and suffixes do not match: `input_tokens` is a count, `secret_refs` are names,
// `tokens_file` is a path.
const secretName =
  /(?:authorization|cookies?|token|secret|passw(?:or)?d|passphrase|credentials?|(?:api|private|signing|access|follow)[-_.]?keys?)$/i;

/** True for a header, field or key whose value is secret: `x-api-key`, `accessToken`. */
export function isSecretName(name: string): boolean {
  return secretName.test(name);
}

// "bearer" and "basic" also occur in prose; a credential is long, or has a digit or a capital
// after its first letter.
const bearer =
  /\b([Bb]earer|BEARER|[Bb]asic|BASIC)(\s+)(?:[\w.~+/=-]{16,}|(?=[\w.~+/=-]+[A-Z0-9=])[\w.~+/=-]{6,})/g;
const issued = /\b(mr_|whsec_)[\w+/=.-]{6,}/g;
const inQuery = /([?&](?:\w*token|api[-_]?key|key|secret|password|signature)=)[^&#\s"\\]+/gi;
const password = /(:\/\/[^\s/:@"\\]*):[^\s/@"\\]+@/g;

const userinfo = /:\/\/.*@/;

/** True for text with a URL that may contain a user name or password. */
export function hasUserinfo(text: string): boolean {
  return userinfo.test(text);
}

/** Redacts bearer tokens, Millrace tokens and secrets in URLs. */
export function scrubText(text: string): string {
  return text
    .replace(bearer, `$1$2${hidden}`)
    .replace(issued, `$1${hidden}`)
    .replace(inQuery, `$1${hidden}`)
    .replace(password, `$1:${hidden}@`);
}

// Broader than `secretName`: matches a member of an object or an item of a list.
const secretMember =
  /(?:authorization|cookies?|token|secret|passw(?:or)?d|passphrase|credentials?|keys?)"\s*[:,]\s*["[{]/i;

/**
 * Redacts the secrets of one line of JSON. It works on the serialized line, so depth, fields of
 * child loggers and toJSON cannot bypass it. Lines without a secret name are not parsed.
 */
export function scrubJsonLine(line: string): string {
  const clean = secretMember.test(line) ? hideMembers(line) : line;
  return scrubText(clean);
}

function hideMembers(line: string): string {
  const record: unknown = JSON.parse(line);
  return `${JSON.stringify(hideIn(record))}\n`;
}

function hideIn(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item, index) => hideItem(value, item, index));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, member]): [string, unknown] => [
    name,
    isSecretName(name) && holdsText(member) ? hidden : hideIn(member),
  ]);
  return Object.fromEntries(entries);
}

// Raw headers are a flat list: a name, its value, the next name.
function hideItem(list: readonly unknown[], item: unknown, index: number): unknown {
  const before = index % 2 === 1 ? list[index - 1] : undefined;
  const follows = typeof before === 'string' && before.length < 64 && isSecretName(before);
  return follows && typeof item === 'string' ? hidden : hideIn(item);
}

function holdsText(value: unknown): boolean {
  return (
    (typeof value === 'string' && value !== '') || (typeof value === 'object' && value !== null)
  );
}
