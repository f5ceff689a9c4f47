import { useId } from 'react';

interface DataFieldProps {
  text: string;
  error: string | undefined;
  onText: (text: string) => void;
}

/** Edits the data of a record as JSON. */
export function DataField({ text, error, onText }: DataFieldProps) {
  const errorId = useId();
  return (
    <label className="field">
      Data
      <textarea
        className="mono db-data"
        rows={14}
        spellCheck={false}
        value={text}
        aria-invalid={error !== undefined}
        aria-describedby={errorId}
        onChange={(event) => onText(event.target.value)}
      />
      <span
        id={errorId}
        role={error === undefined ? undefined : 'alert'}
        className={error === undefined ? 'field-hint' : 'field-error'}
      >
        {error ?? 'A JSON object.'}
      </span>
    </label>
  );
}
