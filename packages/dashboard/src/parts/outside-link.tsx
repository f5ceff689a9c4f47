import type { ReactNode } from 'react';

/** An external link; plain text unless the URL is http or https. */
export function OutsideLink({ href, children }: { href: string | null; children: ReactNode }) {
  if (href === null || !/^https?:\/\//i.test(href)) return children;
  return (
    <a href={href} target="_blank" rel="noreferrer noopener">
      {children}
      <span className="visually-hidden"> (opens in a new tab)</span>
    </a>
  );
}
