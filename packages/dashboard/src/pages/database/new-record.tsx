import { useState } from 'react';
import { useAction } from '../../parts/action.js';
import { Field } from '../../parts/controls.js';
import { FormDialog } from '../../parts/form-dialog.js';
import { explain } from '../../parts/states.js';
import { insert } from './api.js';
import { nameOf } from './columns.js';
import { DataField } from './data-field.js';
import { readData } from './data.js';

interface NewRecordProps {
  collection: string;
  onClose: () => void;
  onCreated: () => void;
}

export function NewRecord({ collection, onClose, onCreated }: NewRecordProps) {
  const [key, setKey] = useState('');
  const [text, setText] = useState('{\n  \n}');
  const [error, setError] = useState<string>();
  const create = useAction({
    run: (data: object) => insert(collection, key, data),
    done: (record) => `Inserted ${nameOf(record)}.`,
    refresh: ['db-status'],
    onDone: () => {
      onClose();
      onCreated();
    },
    onFailed: (refusal) => {
      setError(explain(refusal).title);
      return true;
    },
  });
  const save = () => {
    const read = readData(text);
    if ('error' in read) setError(read.error);
    else create.mutate(read.data);
  };
  return (
    <FormDialog
      wide
      title={`New record in ${collection}`}
      submitLabel="Insert"
      busy={create.isPending}
      onSubmit={save}
      onClose={onClose}
    >
      <Field
        label="Key"
        maxLength={1024}
        value={key}
        hint="Optional. Unique in the collection."
        onChange={setKey}
      />
      <DataField
        text={text}
        error={error}
        onText={(next) => {
          setText(next);
          setError(undefined);
        }}
      />
    </FormDialog>
  );
}
