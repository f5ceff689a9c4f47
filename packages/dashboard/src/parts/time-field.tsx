import { useEffect, useState } from 'react';
import { isWholeLocal, localOf, timestampOf } from './local-time.js';

interface TimeFieldProps {
  label: string;
  /** A timestamp. */
  value: string | undefined;
  /** Gets a timestamp, or an empty text when the field is cleared. */
  onChange: (timestamp: string) => void;
}

/** A date and time. It has its own text, because a year is typed digit by digit. */
export function TimeField({ label, value, onChange }: TimeFieldProps) {
  const [text, setText] = useState(() => localOf(value));
  useEffect(() => setText(localOf(value)), [value]);
  return (
    <label className="field">
      {label}
      <input
        type="datetime-local"
        value={text}
        onChange={({ target }) => {
          setText(target.value);
          if (target.value === '' || isWholeLocal(target.value))
            onChange(timestampOf(target.value));
        }}
      />
    </label>
  );
}
