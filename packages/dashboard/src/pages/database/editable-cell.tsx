import { useState } from 'react';
import { cellText, editedValue, isEditable } from './fields.js';

interface EditableCellProps {
  /** The field, for the accessible name. */
  name: string;
  value: unknown;
  isSaving: boolean;
  onSave: (value: unknown) => void;
}

/** A cell that a double-click, or Enter, turns into an input. */
export function EditableCell({ name, value, isSaving, onSave }: EditableCellProps) {
  const [text, setText] = useState<string>();
  const [error, setError] = useState<string>();
  const close = () => {
    setText(undefined);
    setError(undefined);
  };
  if (text === undefined) {
    return (
      <button
        type="button"
        className="db-cell over-link"
        title={`${cellText(value)}\nDouble-click or press Enter to edit`.trim()}
        aria-label={`${name}: ${cellText(value)}`}
        disabled={!isEditable(value) || isSaving}
        onClick={(event) => {
          // The keyboard clicks with a detail of 0.
          if (event.detail !== 1) setText(cellText(value));
        }}
      >
        {cellText(value)}
      </button>
    );
  }
  const save = () => {
    const edited = editedValue(value, text);
    if ('error' in edited) return setError(edited.error);
    close();
    if (JSON.stringify(edited.value) !== JSON.stringify(value)) onSave(edited.value);
  };
  return (
    <input
      className="db-cell-input over-link"
      aria-label={`Edit ${name}`}
      aria-invalid={error !== undefined}
      title={error}
      autoFocus
      value={text}
      onChange={(event) => {
        setText(event.target.value);
        setError(undefined);
      }}
      onBlur={close}
      onKeyDown={(event) => {
        if (event.key === 'Enter') save();
        else if (event.key === 'Escape') close();
      }}
    />
  );
}
