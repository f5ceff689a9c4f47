import { useEffect, useId, useRef, type ReactNode } from 'react';

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ReactNode;
  /** The row of buttons. */
  actions?: ReactNode;
  wide?: boolean | undefined;
}

/** A modal dialog; the browser traps the focus and restores it. */
export function Dialog({ title, onClose, children, actions, wide }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const body = useRef<HTMLDivElement>(null);
  const titleId = useId();
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    // The browser would focus the close button first.
    body.current?.querySelector<HTMLElement>('textarea, input, select')?.focus();
    return () => element?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      className={wide ? 'dialog dialog-wide' : 'dialog'}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <div className="dialog-head">
        <h2 id={titleId}>{title}</h2>
        <button type="button" className="plain" aria-label="Close" onClick={onClose}>
          ✕
        </button>
      </div>
      <div className="dialog-body" ref={body}>
        {children}
      </div>
      {actions && <div className="dialog-actions">{actions}</div>}
    </dialog>
  );
}
