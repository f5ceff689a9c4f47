import { useId, useState } from 'react';
import { Select } from '../../parts/controls.js';
import { inputKind, type ConfigEntry } from './draft.js';

interface SettingFieldProps {
  entry: ConfigEntry;
  /** The value of the draft; `null` is the default. */
  value: unknown;
  /** Message of the server. */
  error: string | undefined;
  onChange: (value: unknown) => void;
}

/** One setting with the input that suits it; an empty one gets its default. */
export function SettingField({ entry, value, error, onChange }: SettingFieldProps) {
  const id = useId();
  const [mistake, setMistake] = useState<string>();
  const message = mistake ?? error;
  const { key, description, expected } = entry;
  const common = {
    id,
    'aria-invalid': message !== undefined,
    'aria-describedby': `${id}-hint`,
  };
  const kind = inputKind(entry);
  const hint = kind === 'text' ? `${description} (${expected})` : description;
  return (
    <div className="field">
      <label htmlFor={id} className="mono">
        {key}
      </label>
      {kind === 'switch' ? (
        <input
          {...common}
          className="settings-switch"
          type="checkbox"
          role="switch"
          checked={(value ?? entry.default) === true}
          onChange={({ target }) => onChange(target.checked)}
        />
      ) : kind === 'choice' ? (
        <Select
          {...common}
          value={String(value ?? entry.default ?? '')}
          options={entry.choices ?? []}
          onChange={onChange}
        />
      ) : kind === 'list' ? (
        <ListInput {...common} value={value} onChange={onChange} onMistake={setMistake} />
      ) : (
        <input
          {...common}
          type={kind}
          step="any"
          placeholder={typeof entry.default === 'object' ? '' : String(entry.default)}
          value={typeof value === 'string' || typeof value === 'number' ? value : ''}
          onChange={({ target }) => {
            if (target.value === '') onChange(null);
            else onChange(kind === 'number' ? target.valueAsNumber : target.value);
          }}
        />
      )}
      <span id={`${id}-hint`} className={message === undefined ? 'field-hint' : 'field-error'}>
        {message ?? hint}
      </span>
    </div>
  );
}

interface ListInputProps extends Pick<SettingFieldProps, 'value' | 'onChange'> {
  id: string;
  onMistake: (message: string | undefined) => void;
}

/** A list as JSON; the form cannot be sent while it is not one. */
function ListInput({ value, onChange, onMistake, ...common }: ListInputProps) {
  const [text, setText] = useState(() => JSON.stringify(value ?? [], undefined, 1));
  return (
    <textarea
      {...common}
      className="mono"
      rows={5}
      spellCheck={false}
      value={text}
      onChange={({ target }) => {
        setText(target.value);
        const list = listOf(target.value);
        const message = list
          ? ''
          : 'Write a JSON list, such as [{"tool": "Read", "action": "allow"}].';
        // Keeps the form from being sent.
        target.setCustomValidity(message);
        onMistake(message || undefined);
        if (list) onChange(list);
      }}
    />
  );
}

function listOf(text: string): unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(text.trim() || '[]');
    return Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
