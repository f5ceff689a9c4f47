/**
 * Formats stricter than those of ajv-formats: no timestamps with a space or a leap second (which
 * `Date` cannot represent), no base64 with line breaks or nonzero unused bits.
 */
const timestamp =
  /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?(?:[Zz]|[+-](\d\d):(\d\d))$/;

/** A valid RFC 3339 timestamp. */
export function isTimestamp(text: string): boolean {
  if (text.length > 40) return false;
  const match = timestamp.exec(text);
  if (!match) return false;
  const [year, month, day, hour, minute, second, zoneHour, zoneMinute] = match
    .slice(1)
    .map((part) => Number(part ?? 0)) as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const inRange =
    hour < 24 && minute < 60 && second < 60 && zoneHour < 24 && zoneMinute < 60 && day >= 1;
  return inRange && month >= 1 && month <= 12 && day <= daysIn(year, month);
}

function daysIn(year: number, month: number): number {
  // Day 0 of the next month is the last of this one. The offset keeps Date from reading the
  // years 0 to 99 as 1900 to 1999; the calendar repeats every 400 years.
  return new Date(Date.UTC(year + 400, month, 0)).getUTCDate();
}

const base64Alphabet = /^[A-Za-z0-9+/]*={0,2}$/;

/** RFC 4648 section 4: padded, and with the unused bits of the last character zero. */
export function isBase64(text: string): boolean {
  if (text.length % 4 !== 0 || !base64Alphabet.test(text)) return false;
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  if (padding === 0) return true;
  // With two pads four bits are unused, with one pad two.
  const last = text[text.length - padding - 1];
  return last !== undefined && (padding === 2 ? 'AQgw' : 'AEIMQUYcgkosw048').includes(last);
}

/** Messages for values that do not match a format. */
export const formatHints: Readonly<Record<string, string>> = {
  'date-time': 'must be an RFC 3339 timestamp such as 2030-01-31T09:30:00Z',
  date: 'must be a date such as 2030-01-31',
  byte: 'must be padded base64 (RFC 4648)',
  uri: 'must be an absolute URL such as https://example.org/path',
  url: 'must be an absolute URL such as https://example.org/path',
  'uri-reference': 'must be a URL or a path',
  email: 'must be an e-mail address',
  hostname: 'must be a host name',
  ipv4: 'must be an IPv4 address',
  ipv6: 'must be an IPv6 address',
  uuid: 'must be a UUID',
  int32: 'must fit 32 bits',
  int64: 'must fit 64 bits',
};
