import { type PasswordRule, passwordRules } from 'account-client';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { markup, text } from '../language/texts.ts';
import { labelOf, listOf } from './password-rules.ts';
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

function Frame({ field: { name, error }, label, hint, children }: Common & { children: ComponentChildren }) {
  return (
    <div class="field">
      <label for={name}>{label}</label>
      {children}
      {hint && (
        <div class="hint" id={`${name}-hint`}>
          {hint}
        </div>
      )}
      <FieldError name={name} error={error} />
    </div>
  );
}

const FieldError = ({ name, error }: Pick<FieldState, 'name' | 'error'>) =>
  error ? (
    <p class="error" id={`${name}-error`} role="alert">
      {error}
    </p>
  ) : null;

const inputTypes = {
  text: { type: 'text' },
  email: { type: 'email', autocapitalize: 'none', spellcheck: false },
  url: { type: 'url', autocapitalize: 'none', spellcheck: false },
  digits: { type: 'text', inputMode: 'numeric', autocapitalize: 'none', spellcheck: false },
  letters: { type: 'text', autocapitalize: 'none', spellcheck: false },
} as const;

interface TextProps extends Common {
  type?: keyof typeof inputTypes;
  autocomplete: string;
  readonly?: boolean;
}

export function TextField({ type = 'text', autocomplete, readonly = false, field, label, hint }: TextProps) {
  return (
    <Frame field={field} label={label} hint={hint}>
      <input
        {...describe(field, hint)}
        {...inputTypes[type]}
        autocomplete={autocomplete}
        readOnly={readonly}
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

/** `options`: the label of each value. */
export function SelectField({ options, field, label, hint }: Common & { options: Readonly<Record<string, string>> }) {
  return (
    <Frame field={field} label={label} hint={hint}>
      <select
        {...describe(field, hint)}
        value={field.value}
        onInput={(event) => field.onInput(event.currentTarget.value)}
      >
        {Object.entries(options).map(([value, name]) => (
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

/** A password field with a button that shows it; for a new password, with rules that are ticked off when met. */
export function PasswordField({ isNew, field, label }: Omit<Common, 'hint'> & { isNew: boolean }) {
  const [isShown, setShown] = useState(false);
  const hint = isNew && <PasswordRules password={field.value} />;
  return (
    <Frame field={field} label={label} hint={hint}>
      <div class="password">
        <input
          {...describe(field, hint)}
          {...(isShown ? inputTypes.text : ({ type: 'password' } as const))}
          autocomplete={isNew ? 'new-password' : 'current-password'}
          autocapitalize="none"
          spellcheck={false}
          value={field.value}
          onInput={(event) => field.onInput(event.currentTarget.value)}
        />
        <button type="button" class="quiet" aria-pressed={isShown} onClick={() => setShown(!isShown)}>
          {markup('common.passwordField.show', { unseen: (label) => <span class="unseen">{label}</span> })}
        </button>
      </div>
    </Frame>
  );
}

function PasswordRules({ password }: { password: string }) {
  const missing = passwordRules.filter((rule) => !rule.isMet(password));
  return (
    <>
      <p>{text('common.passwordField.needs')}</p>
      <ul class="rules">
        {passwordRules.map((rule) => (
          <li key={labelOf(rule)} data-met={!missing.includes(rule)}>
            {labelOf(rule)}
            <span class="unseen">{missing.includes(rule) ? '' : ` ${text('common.passwordField.met')}`}</span>
          </li>
        ))}
      </ul>
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
