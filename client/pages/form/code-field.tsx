import { useEffect } from 'preact/hooks';
import { text } from '../language/texts.ts';
import { TextField } from './fields.tsx';
import type { FieldState } from './use-form.ts';

const isWhole = (code: string): boolean => code.replace(/\s/g, '').length === 6;

interface Props {
  field: FieldState;
  label: string;
  /** Sends the form: called once the code is whole. */
  submit(): void;
}

/** A six-digit code, which the browser may fill in from a mail. Sent after the last digit: forms empty it if it is refused. */
export function CodeField({ field, label, submit }: Props) {
  useEffect(() => {
    if (isWhole(field.value)) submit();
  }, [field.value]);
  return (
    <TextField field={field} label={label} hint={text('common.codeHint')} type="digits" autocomplete="one-time-code" />
  );
}
