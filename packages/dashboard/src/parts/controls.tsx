import { useId, useState, type ComponentProps, type ReactNode } from 'react';
import { useIsAway } from '../api/servers.js';
import { useShortcut } from './shortcuts.js';

interface ButtonProps extends Omit<ComponentProps<'button'>, 'type'> {
  /** Runs on a click. */
  action?: { isDisabled: boolean; mutate: () => void };
}

/** A button that submits no form. */
export function Button({ action, disabled = false, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      disabled={disabled || action?.isDisabled}
      onClick={action && (() => action.mutate())}
      {...rest}
    />
  );
}

interface DialogButtonProps extends Omit<ButtonProps, 'children'> {
  label: string;
  /** Opens the dialog too. */
  shortcut?: string;
  /** The dialog; it calls `close`. */
  children: (close: () => void) => ReactNode;
}

/** A button that opens a dialog. */
export function DialogButton({ label, shortcut, disabled, children, ...rest }: DialogButtonProps) {
  const [isOpen, setIsOpen] = useState(false);
  const isAway = useIsAway();
  const open = () => setIsOpen(true);
  return (
    <>
      <Button {...rest} disabled={disabled || isAway} onClick={open}>
        {label}
      </Button>
      {shortcut && <Shortcut keys={shortcut} label={label} run={open} />}
      {isOpen && children(() => setIsOpen(false))}
    </>
  );
}

function Shortcut({ keys, label, run }: { keys: string; label: string; run: () => void }) {
  useShortcut(keys, label, run);
  return null;
}

interface Labelled {
  label: string;
  hint?: ReactNode;
  /** Shown in place of the hint. */
  error?: string | undefined;
}

interface FieldProps extends Labelled, Omit<ComponentProps<'input'>, 'onChange'> {
  onChange?: (value: string) => void;
  /** Makes it a text of several lines. */
  rows?: number;
}

/** One line of text, a number, or with `rows` several lines. */
export function Field({ label, hint, error, rows, onChange, ...rest }: FieldProps) {
  const id = useId();
  const shared = {
    'aria-invalid': error !== undefined || undefined,
    'aria-describedby': error === undefined ? undefined : id,
    ...rest,
    ...(onChange && {
      onChange: (event: { target: { value: string } }) => onChange(event.target.value),
    }),
  };
  return (
    <label className="field">
      {label}
      {rows === undefined ? (
        <input {...shared} />
      ) : (
        <textarea {...(shared as ComponentProps<'textarea'>)} rows={rows} />
      )}
      {error === undefined ? (
        hint && <span className="field-hint">{hint}</span>
      ) : (
        <span id={id} role="alert" className="field-error">
          {error}
        </span>
      )}
    </label>
  );
}

/** Texts by value, or values that are their own text. */
export type Options = readonly (string | number)[] | Readonly<Record<string, ReactNode>>;

interface SelectProps extends Omit<ComponentProps<'select'>, 'onChange'> {
  options: Options;
  onChange?: (value: string) => void;
}

/** A list to choose from; its label is beside it or around it. */
export function Select({ options, onChange, ...rest }: SelectProps) {
  const texts: readonly (readonly [string, ReactNode])[] = Array.isArray(options)
    ? options.map((one) => [String(one), one])
    : Object.entries(options);
  return (
    <select {...rest} {...(onChange && { onChange: (event) => onChange(event.target.value) })}>
      {texts.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  );
}

/** A list to choose from, with its label above. */
export function SelectField({ label, ...rest }: SelectProps & { label: string }) {
  return (
    <label className="field">
      {label}
      <Select {...rest} />
    </label>
  );
}

interface CheckProps extends Omit<ComponentProps<'input'>, 'type' | 'onChange'> {
  label: ReactNode;
  onChange?: (isChecked: boolean) => void;
}

/** A checkbox with its label. */
export function Check({ label, title, onChange, ...rest }: CheckProps) {
  return (
    <label className="check" title={title}>
      <input
        type="checkbox"
        {...rest}
        {...(onChange && { onChange: (event) => onChange(event.target.checked) })}
      />
      {label}
    </label>
  );
}

/** What is wrong with a form; nothing when nothing is. */
export function FormError({ children }: { children: ReactNode }) {
  if (!children) return null;
  return (
    <p role="alert" className="field-error">
      {children}
    </p>
  );
}
