import { useId, type ReactNode } from 'react';
import { Dialog } from './dialog.js';
import { explain } from './states.js';

interface FormDialogProps {
  title: string;
  children: ReactNode;
  /** Names the action, not OK. */
  submitLabel: string;
  dangerous?: boolean;
  busy?: boolean;
  wide?: boolean;
  /** The page checks the fields, not the browser. */
  noValidate?: boolean;
  /** Why the last submit failed, shown below the fields. */
  error?: Error | null | undefined;
  /** A button before the main one. */
  alternative?: ReactNode;
  onSubmit: (form: FormData) => void;
  onClose: () => void;
}

/** A dialog with a form and the buttons to submit or leave it. Enter in a field submits. */
export function FormDialog({
  title,
  children,
  submitLabel,
  dangerous,
  busy,
  wide,
  noValidate,
  error,
  alternative,
  onSubmit,
  onClose,
}: FormDialogProps) {
  const form = useId();
  return (
    <Dialog
      title={title}
      wide={wide}
      onClose={onClose}
      actions={
        <>
          <button type="button" onClick={onClose}>
            {submitLabel.startsWith('Cancel') ? 'Close' : 'Cancel'}
          </button>
          {alternative}
          <button
            type="submit"
            form={form}
            className={dangerous ? 'danger' : 'primary'}
            disabled={busy}
          >
            {submitLabel}
          </button>
        </>
      }
    >
      <form
        id={form}
        className="stack"
        noValidate={noValidate}
        onSubmit={(event) => {
          event.preventDefault();
          onSubmit(new FormData(event.currentTarget));
        }}
      >
        {children}
        {error && (
          <p role="alert" className="field-error">
            {explain(error).title}
          </p>
        )}
      </form>
    </Dialog>
  );
}
