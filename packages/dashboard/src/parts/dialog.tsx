import { useEffect, useId, useRef, type ReactNode } from 'react';

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ReactNode;
  /** The row of buttons. */
  actions?: ReactNode;
  wide?: boolean;
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

interface ConfirmProps {
  title: string;
  children: ReactNode;
  /** Names the action, not OK. */
  confirmLabel: string;
  dangerous?: boolean;
  busy?: boolean;
  /** Another way to do it, before the main button. */
  alternative?: ReactNode;
  onConfirm: () => void;
  onClose: () => void;
}

/** Confirms an action that cannot be undone. Enter in a field of it confirms. */
export function Confirm({
  title,
  children,
  confirmLabel,
  dangerous,
  busy,
  alternative,
  onConfirm,
  onClose,
}: ConfirmProps) {
  const form = useId();
  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={
        <>
          <button type="button" onClick={onClose}>
            {confirmLabel.startsWith('Cancel') ? 'Close' : 'Cancel'}
          </button>
          {alternative}
          <button
            type="submit"
            form={form}
            className={dangerous ? 'danger' : 'primary'}
            disabled={busy}
          >
            {confirmLabel}
          </button>
        </>
      }
    >
      <form
        id={form}
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          onConfirm();
        }}
      >
        {children}
      </form>
    </Dialog>
  );
}
