import { useState } from 'react';
import { useAction } from '../../parts/action.js';
import { Field } from '../../parts/controls.js';
import { FormDialog } from '../../parts/form-dialog.js';
import { navigate } from '../../parts/location.js';
import { explain } from '../../parts/states.js';
import { insert } from './api.js';
import { collectionNameError } from './collection-name.js';
import { DataField } from './data-field.js';
import { readData } from './data.js';

interface NewCollectionProps {
  /** The names of the collections that exist. */
  names: readonly string[];
  onClose: () => void;
}

/** Creates a collection with its first record, and goes there. */
export function NewCollection({ names, onClose }: NewCollectionProps) {
  const [name, setName] = useState('');
  const [text, setText] = useState('{\n  \n}');
  const [nameError, setNameError] = useState<string>();
  const [dataError, setDataError] = useState<string>();
  const create = useAction({
    run: (data: object) => insert(name, '', data),
    done: () => `Created the collection ${name}.`,
    refresh: ['db-status'],
    onDone: () => {
      onClose();
      navigate(`/database/${name}`);
    },
    // Shown in the form.
    onFailed: () => true,
  });
  const submit = () => {
    const read = readData(text);
    const error = collectionNameError(name, names);
    setNameError(error);
    setDataError('error' in read ? read.error : undefined);
    if (error === undefined && 'data' in read) create.mutate(read.data);
  };
  return (
    <FormDialog
      title="New collection"
      submitLabel="Create"
      busy={create.isPending}
      noValidate
      onSubmit={submit}
      onClose={onClose}
    >
      <Field
        label="Name"
        value={name}
        spellCheck={false}
        autoCapitalize="off"
        hint='Letters, digits, ".", "_" and "-"; the first is a letter.'
        error={nameError}
        onChange={(next) => {
          setName(next);
          setNameError(undefined);
        }}
      />
      <p className="muted">The first record creates the collection.</p>
      <DataField
        text={text}
        error={dataError ?? (create.error ? explain(create.error).title : undefined)}
        onText={(next) => {
          setText(next);
          setDataError(undefined);
          create.reset();
        }}
      />
    </FormDialog>
  );
}
