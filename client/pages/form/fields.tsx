import { type PasswordRule, passwordRules } from 'account-client';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { markup, text } from '../language/texts.ts';
import { labelOf, listOf } from './password-rules.ts';
import { StrengthMeter } from './strength-meter.tsx';
import type { FieldState } from './use-form.ts';

interface Common {
  field: FieldState;
  label: string;
  hint?: ComponentChildren;
}

/** The attributes of an input. Its description is its hint and its error, if any. */
const describe = ({ name, error }: FieldState, hint: ComponentChildren) => ({
  id: name,
  name,
  'aria-invalid': error ? ('true' as const) : undefined,
  'aria-describedby': [hint && `${name}-hint`, error && `${name}-error`].filter(Boolean).join(' ') || undefined,
});

interface FrameProps extends Common {
  /** The message is read out, not shown. */
  isErrorUnseen?: boolean;
  children: ComponentChildren;
}

function Frame({ field: { name, error }, label, hint, isErrorUnseen = false, children }: FrameProps) {
  return (
    <div class="field">
      <label for={name}>{label}</label>
      {children}
      {hint && (
        <div class="hint" id={`${name}-hint`}>
          {hint}
        </div>
      )}
      <FieldError name={name} error={error} isUnseen={isErrorUnseen} />
    </div>
  );
}

const FieldError = ({ name, error, isUnseen = false }: Pick<FieldState, 'name' | 'error'> & { isUnseen?: boolean }) =>
  error ? (
    <p class={isUnseen ? 'unseen' : 'error'} id={`${name}-error`} role="alert">
      {error}
    </p>
  ) : null;

const inputTypes = {
  text: { type: 'text' },
  email: { type: 'email', autocapitalize: 'none', spellcheck: false },
  url: { type: 'url', autocapitalize: 'none', spellcheck: false },
  number: { type: 'text', inputMode: 'decimal', spellcheck: false },
  date: { type: 'date' },
  digits: { type: 'text', inputMode: 'numeric', autocapitalize: 'none', spellcheck: false },
  letters: { type: 'text', autocapitalize: 'none', spellcheck: false },
} as const;

interface TextProps extends Common {
  type?: keyof typeof inputTypes;
  autocomplete: string;
  readonly?: boolean;
  /** Only where the label is not seen. */
  placeholder?: string;
}

export function TextField({
  type = 'text',
  autocomplete,
  readonly = false,
  placeholder,
  field,
  label,
  hint,
}: TextProps) {
  return (
    <Frame field={field} label={label} hint={hint}>
      <input
        {...describe(field, hint)}
        {...inputTypes[type]}
        autocomplete={autocomplete}
        readOnly={readonly}
        placeholder={placeholder}
        value={field.value}
        onInput={(event) => field.onInput(event.currentTarget.value)}
      />
    </Frame>
  );
}

export function TextArea({ rows, field, label, hint }: Common & { rows: number }) {
  return (
    <Frame field={field} label={label} hint={hint}>
      <textarea
        {...describe(field, hint)}
        rows={rows}
        value={field.value}
        onInput={(event) => field.onInput(event.currentTarget.value)}
      />
    </Frame>
  );
}

interface SelectProps extends Common {
  /** In this order: the keys of an object would put numbers first. */
  options: readonly (readonly [value: string, label: string])[];
}

export function SelectField({ options, field, label, hint }: SelectProps) {
  return (
    <Frame field={field} label={label} hint={hint}>
      <select
        {...describe(field, hint)}
        value={field.value}
        onInput={(event) => field.onInput(event.currentTarget.value)}
      >
        {options.map(([value, name]) => (
          <option key={value} value={value}>
            {name}
          </option>
        ))}
      </select>
    </Frame>
  );
}

interface CheckBoxProps {
  field: FieldState;
  isOptional?: boolean;
  children: ComponentChildren;
}

/** A checkbox that must be ticked, unless it is optional. Its value is empty until then. */
export function CheckBox({ field, isOptional = false, children }: CheckBoxProps) {
  const { name, error, value, onInput } = field;
  return (
    <div class="field">
      <div class="check">
        <input
          {...describe(field, undefined)}
          type="checkbox"
          required={!isOptional}
          checked={value !== ''}
          onInput={(event) => onInput(event.currentTarget.checked ? 'ticked' : '')}
        />
        <label for={name}>{children}</label>
      </div>
      <FieldError name={name} error={error} />
    </div>
  );
}

interface PasswordProps extends Omit<Common, 'hint'> {
  isNew: boolean;
  /** What a new password must not consist of. */
  about?: readonly string[];
}

/** A password field with a button that shows it; for a new password, with its rules while it has the focus. */
export function PasswordField({ isNew, about = [], field, label }: PasswordProps) {
  const [isShown, setShown] = useState(false);
  const [isHere, setHere] = useState(false);
  const [isLeft, setLeft] = useState(false);
  const unmet = isNew && field.value !== '' && passwordRules.some((rule) => !rule.isMet(field.value));
  const isMarked = unmet && (isLeft || Boolean(field.error));
  const hint = isNew && <PasswordRules password={field.value} isVisible={isHere || isMarked} isMarked={isMarked} />;
  return (
    // The list of the rules says what is missing; the message of the field would repeat it.
    <Frame field={field} label={label} hint={hint} isErrorUnseen={unmet}>
      <div class="password">
        <input
          {...describe(field, hint)}
          {...(isMarked && { 'aria-invalid': 'true' as const })}
          {...(isShown ? inputTypes.text : ({ type: 'password' } as const))}
          autocomplete={isNew ? 'new-password' : 'current-password'}
          autocapitalize="none"
          spellcheck={false}
          value={field.value}
          onInput={(event) => field.onInput(event.currentTarget.value)}
          onFocus={() => {
            setHere(true);
            setLeft(false);
          }}
          onBlur={({ relatedTarget }) => {
            setLeft(true);
            // A button or a box that is being pressed must not move: the list stays then.
            if (relatedTarget instanceof HTMLInputElement && relatedTarget.type !== 'checkbox') setHere(false);
          }}
        />
        <button type="button" class="reveal" aria-pressed={isShown} onClick={() => setShown(!isShown)}>
          {markup('common.passwordField.show', { unseen: (label) => <span class="unseen">{label}</span> })}
        </button>
      </div>
      {isNew && <StrengthMeter password={field.value} isEntered={isHere} about={about} />}
    </Frame>
  );
}

interface RulesProps {
  password: string;
  /** False: for screen readers only, as the description of the field. */
  isVisible: boolean;
  /** Whether unmet rules are marked as wrong. */
  isMarked: boolean;
}

function PasswordRules({ password, isVisible, isMarked }: RulesProps) {
  const missing = passwordRules.filter((rule) => !rule.isMet(password));
  return (
    <>
      <div class={isVisible ? undefined : 'unseen'}>
        <p class="unseen">{text('common.passwordField.needs')}</p>
        <ul class={isMarked ? 'rules marked' : 'rules'}>
          {passwordRules.map((rule) => (
            <li key={labelOf(rule)} data-met={!missing.includes(rule)}>
              {labelOf(rule)}
              <span class="unseen">{missing.includes(rule) ? '' : ` ${text('common.passwordField.met')}`}</span>
            </li>
          ))}
        </ul>
      </div>
      {/* Read out as the list changes; the list itself is read when the field is entered. */}
      <p class="unseen" role="status">
        {password === '' ? '' : summary(missing)}
      </p>
    </>
  );
}

const summary = (missing: PasswordRule[]) =>
  missing.length === 0
    ? text('common.passwordField.allMet')
    : text('common.passwordField.missingNow', { rules: listOf(missing) });
