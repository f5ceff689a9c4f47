import { ApiError } from '@millrace/client';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useAction } from '../../parts/action.js';
import { Confirm } from '../../parts/confirm.js';
import { Button } from '../../parts/controls.js';
import { Dialog } from '../../parts/dialog.js';
import { FormDialog } from '../../parts/form-dialog.js';
import { explain, Loaded } from '../../parts/states.js';
import { Time } from '../../parts/time.js';
import { readRecord, remove, updateIfRev, type DbRecord } from './api.js';
import { nameOf } from './columns.js';
import { Conflict } from './conflict.js';
import { DataField } from './data-field.js';
import { dataText, readData } from './data.js';

interface RecordEditorProps {
  collection: string;
  id: string;
  onClose: () => void;
  onChanged: () => void;
}

/** Edits one record; saves only if its revision has not changed. */
export function RecordEditor({ collection, id, onClose, onChanged }: RecordEditorProps) {
  const record = useQuery({
    queryKey: ['db-record', collection, id],
    queryFn: () => readRecord(collection, id),
    // Read once: the record must not change while it is edited.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    refetchInterval: false,
    refetchOnWindowFocus: false,
  });
  if (record.data) {
    return <Editor {...{ collection, onClose, onChanged }} read={record.data} />;
  }
  return (
    <Dialog wide title="Record" onClose={onClose}>
      <Loaded query={record}>{() => null}</Loaded>
    </Dialog>
  );
}

type EditorProps = Omit<RecordEditorProps, 'id'> & { read: DbRecord };

function Editor({ collection, read, onClose, onChanged }: EditorProps) {
  const [mine, setMine] = useState(read);
  const [theirs, setTheirs] = useState<DbRecord>();
  const [text, setText] = useState(() => dataText(read.data));
  const [error, setError] = useState<string>();
  const [isDeleting, setIsDeleting] = useState(false);
  const [isLeaving, setIsLeaving] = useState(false);
  // Escape must not lose what was typed.
  const leave = () => (text === dataText(mine.data) ? onClose() : setIsLeaving(true));
  const save = useAction({
    run: (data: object) => updateIfRev(collection, mine, data),
    done: ({ rev }) => `Saved as revision ${rev}.`,
    refresh: ['db-status'],
    onDone: () => {
      onClose();
      onChanged();
    },
    onFailed: (refusal) => {
      if (refusal instanceof ApiError && refusal.code === 'REV_MISMATCH') compare.mutate();
      else setError(explain(refusal).title);
      return true;
    },
  });
  const compare = useAction({ run: () => readRecord(collection, mine.id), onDone: setTheirs });
  const onSave = () => {
    const result = readData(text);
    if ('error' in result) setError(result.error);
    else save.mutate(result.data);
  };
  const resolve = () => {
    setMine(theirs!);
    setTheirs(undefined);
  };
  if (isDeleting) {
    return <Delete {...{ collection, onChanged, onClose }} record={mine} />;
  }
  if (isLeaving) return <Discard onDiscard={onClose} onStay={() => setIsLeaving(false)} />;
  return (
    <Dialog
      wide
      title={nameOf(mine)}
      onClose={leave}
      actions={
        <>
          <Button className="danger" onClick={() => setIsDeleting(true)}>
            Delete
          </Button>
          <Button className="dialog-cancel" onClick={leave}>
            Cancel
          </Button>
          <Button
            className="primary"
            disabled={save.isPending || compare.isPending || theirs !== undefined}
            onClick={onSave}
          >
            Save
          </Button>
        </>
      }
    >
      <Facts record={mine} />
      {theirs && (
        <Conflict
          theirs={theirs}
          mine={text}
          onTakeTheirs={() => {
            setText(dataText(theirs.data));
            resolve();
          }}
          onKeepMine={resolve}
        />
      )}
      <DataField
        text={text}
        error={error}
        onText={(next) => {
          setText(next);
          setError(undefined);
        }}
      />
    </Dialog>
  );
}

function Discard({ onDiscard, onStay }: { onDiscard: () => void; onStay: () => void }) {
  return (
    <FormDialog
      title="Discard your changes?"
      submitLabel="Discard"
      dangerous
      onClose={onStay}
      onSubmit={onDiscard}
    >
      <p>The record stays as it was read.</p>
    </FormDialog>
  );
}

function Facts({ record }: { record: DbRecord }) {
  return (
    <div className="row muted">
      <span className="mono">{record.id}</span>
      <span>revision {record.rev}</span>
      <span>
        created <Time at={record.created_at} />
      </span>
      <span>
        updated <Time at={record.updated_at} />
      </span>
      {record.expires_at && (
        <span>
          expires <Time at={record.expires_at} />
        </span>
      )}
    </div>
  );
}

interface DeleteProps {
  collection: string;
  record: DbRecord;
  onClose: () => void;
  onChanged: () => void;
}

function Delete({ collection, record, onClose, onChanged }: DeleteProps) {
  return (
    <Confirm
      title={`Delete ${nameOf(record)}?`}
      submitLabel="Delete"
      dangerous
      run={() => remove(collection, record.id)}
      done={() => `Deleted ${nameOf(record)}.`}
      refresh={['db-status']}
      onDone={onChanged}
      onClose={onClose}
    >
      <p>Deletes the record at its current revision. This cannot be undone.</p>
    </Confirm>
  );
}
