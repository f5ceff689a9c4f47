import { useEffect, type ReactNode } from 'react';

interface PageProps {
  title: string;
  /** Buttons and filters to the right of the title. */
  actions?: ReactNode;
  /** Breadcrumb links above the title. */
  above?: ReactNode;
  children: ReactNode;
}

/** The layout of every page: title, actions, content. */
export function Page({ title, actions, above, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} – Millrace`;
  }, [title]);
  return (
    <>
      <header className="page-head">
        <div className="page-title">
          {above}
          <h1>{title}</h1>
        </div>
        {actions && <div className="page-actions">{actions}</div>}
      </header>
      {children}
    </>
  );
}

/** A box with a title. */
export function Panel({
  title,
  actions,
  children,
  className = '',
}: {
  title?: string;
  actions?: ReactNode;
  children: ReactNode;
  className?: string;
}) {
  return (
    <section className={`panel ${className}`} aria-label={title}>
      {(title || actions) && (
        <div className="panel-head">
          {title && <h2>{title}</h2>}
          {actions && <div className="panel-actions">{actions}</div>}
        </div>
      )}
      {children}
    </section>
  );
}

/** A name and what it stands for, in a list of facts. */
export function Fact({
  name,
  className,
  children,
}: {
  name: string;
  className?: string;
  children: ReactNode;
}) {
  return (
    <>
      <dt>{name}</dt>
      <dd className={className}>{children}</dd>
    </>
  );
}

/** A number with its name. */
export function Figure({
  name,
  value,
  note,
}: {
  name: string;
  value: ReactNode;
  note?: ReactNode;
}) {
  return (
    <div className="figure">
      <span className="figure-name">{name}</span>
      <span className="figure-value">{value}</span>
      {note && <span className="figure-note">{note}</span>}
    </div>
  );
}
