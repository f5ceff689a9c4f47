import { Field } from '../../parts/controls.js';

interface DataFieldProps {
  text: string;
  error: string | undefined;
  onText: (text: string) => void;
}

/** Edits the data of a record as JSON. */
export function DataField({ text, error, onText }: DataFieldProps) {
  return (
    <Field
      label="Data"
      className="mono db-data"
      rows={14}
      spellCheck={false}
      value={text}
      hint="A JSON object."
      error={error}
      onChange={onText}
    />
  );
}
