/** The value of a cookie in a `Cookie` header. */
export function cookieValue(header: string | undefined, name: string): string | undefined {
  const pair = header
    ?.split(';')
    .map((each) => each.trim())
    .find((each) => each.startsWith(`${name}=`));
  return pair?.slice(name.length + 1) || undefined;
}

interface LoginCookie {
  name: string;
  value: string;
  maxAgeMs: number;
  /** Whether the page came over HTTPS; a browser drops a `Secure` cookie otherwise. */
  isSecure: boolean;
}

export function cookieHeader({ name, value, maxAgeMs, isSecure }: LoginCookie): string {
  const maxAge = Math.floor(maxAgeMs / 1000);
  const attributes = `Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Strict`;
  return `${name}=${value}; ${attributes}${isSecure ? '; Secure' : ''}`;
}
