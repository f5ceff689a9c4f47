import { useState } from 'react';
import { useAction } from '../../parts/action.js';
import { Dialog } from '../../parts/dialog.js';
import { insert } from './api.js';
import { nameOf } from './columns.js';
import { DataField } from './data-field.js';
import { readData } from './data.js';

interface NewRecordProps {
  collection: string;
  onClose: () => void;
  onMade: () => void;
}

export function NewRecord({ collection, onClose, onMade }: NewRecordProps) {
  const [key, setKey] = useState('');
  const [text, setText] = useState('{\n  \n}');
  const [error, setError] = useState<string>();
  const make = useAction({
    run: (data: object) => insert(collection, key, data),
    done: (record) => `Inserted ${nameOf(record)}.`,
    refresh: ['db-status'],
    onDone: () => {
      onClose();
      onMade();
    },
  });
  const save = () => {
    const read = readData(text);
    if ('error' in read) setError(read.error);
    else make.mutate(read.data);
  };
  return (
    <Dialog
      wide
      title={`New record in ${collection}`}
      onClose={onClose}
      actions={
        <>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="button" className="primary" disabled={make.isPending} onClick={save}>
            Insert
          </button>
        </>
      }
    >
      <label className="field">
        Key
        <input maxLength={1024} value={key} onChange={(event) => setKey(event.target.value)} />
        <span className="field-hint">Your own name for it, unique here. It may stay empty.</span>
      </label>
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
