import type { ReactNode } from 'react';
import { useParam } from './location.js';

/** Texts by value, in the order of the buttons. */
type Texts<Value extends string> = Readonly<Partial<Record<Value, ReactNode>>>;

interface ChoiceProps<Value extends string> {
  label: string;
  value: Value;
  options: Texts<Value>;
  onChange: (value: Value) => void;
  /** Looks like tabs, for the views of a page. */
  isTabs?: boolean;
}

/** A row of buttons of which one is selected. */
export function Choice<Value extends string>({
  label,
  value,
  options,
  onChange,
  isTabs = false,
}: ChoiceProps<Value>) {
  return (
    <div className={isTabs ? 'tabs' : 'chips'} role="group" aria-label={label}>
      {(Object.entries(options) as [Value, ReactNode][]).map(([option, text]) => (
        <button
          key={option}
          type="button"
          className={isTabs ? 'tab' : 'chip'}
          aria-pressed={option === value}
          onClick={() => onChange(option)}
        >
          {text}
        </button>
      ))}
    </div>
  );
}

/** A choice that is a parameter of the address: its value, its buttons, and how to set it. */
export function useChoice<Value extends string>(
  name: string,
  fallback: NoInfer<Value>,
  label: string,
  options: Readonly<Record<Value, ReactNode>>,
  isTabs = false,
): [Value, ReactNode, (value: Value) => void] {
  const [value, onChange] = useParam(name, fallback, Object.keys(options) as Value[]);
  return [value, <Choice key={name} {...{ label, value, options, onChange, isTabs }} />, onChange];
}
