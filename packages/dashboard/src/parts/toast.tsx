import { useEffect, useRef } from 'react';
import { InlineCode } from './inline-code.js';
import { Store } from '../api/store.js';

interface Toast {
  id: number;
  tone: 'good' | 'bad';
  text: string;
}

const shownMs = 6000;
const toasts = new Store<readonly Toast[]>([]);
let lastId = 0;

/** Shows the result of an action. */
export function toast(tone: Toast['tone'], text: string): void {
  const id = ++lastId;
  toasts.set([...toasts.value.slice(-3), { id, tone, text }]);
  // Errors stay until they are dismissed.
  if (tone === 'good') setTimeout(() => dismiss(id), shownMs);
}

function dismiss(id: number): void {
  toasts.set(toasts.value.filter((one) => one.id !== id));
}

export function Toasts() {
  const shown = toasts.use();
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
