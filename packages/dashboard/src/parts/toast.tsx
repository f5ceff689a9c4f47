import { useEffect, useRef, useSyncExternalStore } from 'react';
import { InlineCode } from './inline-code.js';

interface Toast {
  id: number;
  tone: 'good' | 'bad';
  text: string;
}

const shownMs = 6000;
let toasts: readonly Toast[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

function change(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

/** Shows the result of an action. */
export function toast(tone: Toast['tone'], text: string): void {
  const id = ++lastId;
  change([...toasts.slice(-3), { id, tone, text }]);
  // Errors stay until they are dismissed.
  if (tone === 'good') setTimeout(() => dismiss(id), shownMs);
}

function dismiss(id: number): void {
  change(toasts.filter((one) => one.id !== id));
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function Toasts() {
  const shown = useSyncExternalStore(subscribe, () => toasts);
  const box = useRef<HTMLDivElement>(null);
  // Reopening the popover puts it above a dialog that was opened since.
  useEffect(() => {
    box.current?.hidePopover();
    if (shown.length > 0) box.current?.showPopover();
  }, [shown]);
  return (
    <div ref={box} popover="manual" className="toasts" role="status" aria-live="polite">
      {shown.map(({ id, tone, text }) => (
        <div key={id} className={`toast toast-${tone}`}>
          <span>
            <InlineCode text={text} />
          </span>
          <button type="button" className="plain" aria-label="Dismiss" onClick={() => dismiss(id)}>
            ✕
          </button>
        </div>
      ))}
    </div>
  );
}
