import { useState } from 'react';

const openDepth = 2;
const maxShown = 200;

/** JSON as a tree whose branches open and close; children are rendered when they open. */
export function JsonTree({ value }: { value: unknown }) {
  return (
    <div className="json-tree mono" tabIndex={0} role="group" aria-label="JSON tree">
      <Branch value={value} depth={0} />
    </div>
  );
}

const sizeText = (size: number, isList: boolean): string =>
  `${size} ${isList ? 'item' : 'field'}${size === 1 ? '' : 's'}`;

function Branch({ name, value, depth }: { name?: string; value: unknown; depth: number }) {
  const [isOpen, setIsOpen] = useState(depth < openDepth);
  const label = name === undefined ? null : <span className="json-name">{name}: </span>;
  if (typeof value !== 'object' || value === null) {
    return (
      <div>
        {label}
        <span className={`json-${value === null ? 'null' : typeof value}`}>
          {JSON.stringify(value)}
        </span>
      </div>
    );
  }
  const entries = Object.entries(value);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  if (entries.length === 0) {
    return (
      <div>
        {label}
        {open}
        {close}
      </div>
    );
  }
  return (
    <details open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>
        {label}
        {open} <span className="muted">{sizeText(entries.length, open === '[')}</span> {close}
      </summary>
      {isOpen && (
        <div className="json-children">
          {entries.slice(0, maxShown).map(([key, child]) => (
            <Branch
              key={key}
              name={open === '[' ? key : JSON.stringify(key)}
              value={child}
              depth={depth + 1}
            />
          ))}
          {entries.length > maxShown && (
            <div className="muted">{entries.length - maxShown} more: see Text</div>
          )}
        </div>
      )}
    </details>
  );
}
