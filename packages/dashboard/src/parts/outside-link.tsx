import type { ReactNode } from 'react';

/** A link away from the dashboard; only when the address is one a browser may safely follow. */
export function OutsideLink({ href, children }: { href: string | null; children: ReactNode }) {
  if (href === null || !/^https?:\/\//i.test(href)) return children;
  return (
    <a href={href} target="_blank" rel="noreferrer noopener">
      {children}
      <span className="visually-hidden"> (opens in a new tab)</span>
    </a>
  );
}
