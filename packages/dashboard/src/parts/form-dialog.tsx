import { useId, type ReactNode } from 'react';
import { useIsAway } from '../api/servers.js';
import { Button, FormError } from './controls.js';
import { Dialog } from './dialog.js';
import { explain } from './states.js';

export interface FormDialogProps {
  title: string;
  children: ReactNode;
  /** Names the action, not OK. */
  submitLabel: string;
  /** What a submit runs; the dialog is busy meanwhile. */
  action?: { isDisabled: boolean; mutate: () => void };
  dangerous?: boolean;
  busy?: boolean;
  wide?: boolean;
  /** The page checks the fields, not the browser. */
  noValidate?: boolean;
  /** Why the last submit failed, shown below the fields. */
  error?: Error | null | undefined;
  /** A button before the main one. */
  alternative?: ReactNode;
  onSubmit?: (form: FormData) => void;
  onClose: () => void;
}

/** A dialog with a form and the buttons to submit or leave it. Enter in a field submits. */
export function FormDialog(props: FormDialogProps) {
  const { title, children, submitLabel, action, error, wide, onClose } = props;
  const form = useId();
  const isAway = useIsAway();
  return (
    <Dialog
      title={title}
      wide={wide}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{submitLabel.startsWith('Cancel') ? 'Close' : 'Cancel'}</Button>
          {props.alternative}
          <button
            type="submit"
            form={form}
            className={props.dangerous ? 'danger' : 'primary'}
            disabled={props.busy || action?.isDisabled || isAway}
          >
            {submitLabel}
          </button>
        </>
      }
    >
      <form
        id={form}
        className="stack"
        noValidate={props.noValidate}
        onSubmit={(event) => {
          event.preventDefault();
          if (props.onSubmit) props.onSubmit(new FormData(event.currentTarget));
          else action?.mutate();
        }}
      >
        {children}
        <FormError>{error && explain(error).title}</FormError>
      </form>
    </Dialog>
  );
}
