import { useState } from 'react';
import { configGroups, valueAt, withField, type ConfigField, type Json } from './config-draft.js';

interface ConfigFieldsProps {
  draft: Json;
  /** Messages of the server by path. */
  errors: ReadonlyMap<string, string>;
  onChange: (draft: Json) => void;
}

/** The settings that are changed most; an empty field gets its default, which it shows. */
export function ConfigFields({ draft, errors, onChange }: ConfigFieldsProps) {
  // A pull queue has workers instead of an address.
  const isPull = valueAt(draft, 'callback.protocol') === 'pull';
  return (
    <>
      {configGroups.map(({ title, fields }) => (
        <fieldset key={title}>
          <legend>{title}</legend>
          <div className="fields">
            {fields
              .filter(({ path }) => !isPull || path !== 'callback.url')
              .map((field) => (
                <label key={field.path} className="field">
                  {field.label}
                  <Control
                    field={field}
                    value={valueAt(draft, field.path)}
                    isInvalid={errors.has(field.path)}
                    isRequired={field.path === 'callback.url'}
                    onChange={(value) => onChange(withField(draft, field.path, value))}
                  />
                  {(errors.get(field.path) ?? field.hint) && (
                    <span className={errors.has(field.path) ? 'field-error' : 'field-hint'}>
                      {errors.get(field.path) ?? field.hint}
                    </span>
                  )}
                </label>
              ))}
          </div>
        </fieldset>
      ))}
    </>
  );
}

const booleans = ['true', 'false'] as const;

interface ControlProps {
  field: ConfigField;
  value: unknown;
  isInvalid: boolean;
  isRequired: boolean;
  onChange: (value: unknown) => void;
}

function Control({
  field: { kind, preset, options = booleans },
  value,
  isInvalid,
  isRequired,
  onChange,
}: ControlProps) {
  if (kind === 'boolean' || kind === 'choice') {
    return (
      <select
        aria-invalid={isInvalid}
        value={value === undefined ? '' : String(value)}
        onChange={({ target }) => {
          const chosen = kind === 'boolean' ? target.value === 'true' : target.value;
          onChange(target.value === '' ? undefined : chosen);
        }}
      >
        <option value="">{`default: ${preset}`}</option>
        {options.map((option) => (
          <option key={option} value={option}>
            {kind === 'boolean' ? (option === 'true' ? 'on' : 'off') : option}
          </option>
        ))}
      </select>
    );
  }
  return (
    <input
      type={kind}
      step="any"
      required={isRequired}
      placeholder={isRequired ? 'http://127.0.0.1:9000/run' : preset}
      aria-invalid={isInvalid}
      value={typeof value === 'string' || typeof value === 'number' ? value : ''}
      onChange={({ target }) => {
        if (target.value === '') onChange(isRequired ? '' : undefined);
        else onChange(kind === 'number' ? Number(target.value) : target.value);
      }}
    />
  );
}

/** The whole config as JSON. */
export function ConfigJson({ draft, onChange }: Omit<ConfigFieldsProps, 'errors'>) {
  const [text, setText] = useState(() => JSON.stringify(draft, undefined, 2));
  const [error, setError] = useState<string>();
  return (
    <label className="field">
      Config
      <textarea
        className="mono"
        rows={18}
        spellCheck={false}
        value={text}
        aria-invalid={error !== undefined}
        onChange={(event) => {
          setText(event.target.value);
          try {
            onChange(JSON.parse(event.target.value) as Json);
            setError(undefined);
          } catch (mistake) {
            setError(`Invalid JSON: ${(mistake as Error).message}`);
          }
        }}
      />
      {error !== undefined && <span className="field-error">{error}</span>}
    </label>
  );
}
