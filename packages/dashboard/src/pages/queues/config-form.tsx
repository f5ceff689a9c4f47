import { useState } from 'react';
import { Field, Select } from '../../parts/controls.js';
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

const booleans = { true: 'on', false: 'off' };

interface ControlProps {
  field: ConfigField;
  value: unknown;
  isInvalid: boolean;
  isRequired: boolean;
  onChange: (value: unknown) => void;
}

function Control({
  field: { kind, preset, options },
  value,
  isInvalid,
  isRequired,
  onChange,
}: ControlProps) {
  if (kind === 'boolean' || kind === 'choice') {
    const texts = options ? Object.fromEntries(options.map((one) => [one, one])) : booleans;
    return (
      <Select
        aria-invalid={isInvalid}
        value={value === undefined ? '' : String(value)}
        options={{ '': `default: ${preset}`, ...texts }}
        onChange={(chosen) => {
          const next = kind === 'boolean' ? chosen === 'true' : chosen;
          onChange(chosen === '' ? undefined : next);
        }}
      />
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
    <Field
      label="Config"
      className="mono"
      rows={18}
      spellCheck={false}
      value={text}
      error={error}
      onChange={(next) => {
        setText(next);
        try {
          onChange(JSON.parse(next) as Json);
          setError(undefined);
        } catch (mistake) {
          setError(`Invalid JSON: ${(mistake as Error).message}`);
        }
      }}
    />
  );
}
