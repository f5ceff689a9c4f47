import { useAction, type ActionOptions } from './action.js';
import { FormDialog, type FormDialogProps } from './form-dialog.js';

interface ConfirmProps<Result>
  extends ActionOptions<FormData, Result>, Omit<FormDialogProps, 'action' | 'onSubmit'> {
  /** A refusal stays in the dialog. */
  showsError?: boolean;
}

/** A dialog that runs an action with its form, and closes when the action is done. */
export function Confirm<Result>(props: ConfirmProps<Result>) {
  const { run, done, refresh, onDone, onFailed, showsError, ...dialog } = props;
  const action = useAction<FormData, Result>({
    run,
    ...(done && { done }),
    ...(refresh && { refresh }),
    onDone: (result) => {
      dialog.onClose();
      onDone?.(result);
    },
    onFailed: showsError ? () => true : (onFailed ?? (() => false)),
  });
  return (
    <FormDialog
      {...dialog}
      busy={action.isPending || dialog.busy === true}
      error={showsError ? action.error : undefined}
      onSubmit={action.mutate}
    />
  );
}
