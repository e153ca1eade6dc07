import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { passwordRules } from './password-rules.ts';
import type { FieldState } from './use-form.ts';

interface Common extends FieldState {
  label: string;
  hint?: ComponentChildren;
}

/** The attributes of an input; its description consists of its hint and its error, where present. */
const describe = ({ name, hint, error }: Pick<Common, 'name' | 'hint' | 'error'>) => ({
  id: name,
  name,
  'aria-invalid': error ? ('true' as const) : undefined,
  'aria-describedby': [hint && `${name}-hint`, error && `${name}-error`].filter(Boolean).join(' ') || undefined,
});

function Frame({ name, label, hint, error, children }: Common & { children: ComponentChildren }) {
  return (
    <div class="field">
      <label for={name}>{label}</label>
      {children}
      {hint && (
        <div class="hint" id={`${name}-hint`}>
          {hint}
        </div>
      )}
      {error && (
        <p class="error" id={`${name}-error`} role="alert">
          {error}
        </p>
      )}
    </div>
  );
}

const inputTypes = {
  text: { type: 'text' },
  email: { type: 'email', autocapitalize: 'none', spellcheck: false },
  url: { type: 'url', autocapitalize: 'none', spellcheck: false },
} as const;

interface TextProps extends Common {
  type?: keyof typeof inputTypes;
  autocomplete: string;
  readonly?: boolean;
}

export function TextField({ type = 'text', autocomplete, readonly = false, ...common }: TextProps) {
  return (
    <Frame {...common}>
      <input
        {...describe(common)}
        {...inputTypes[type]}
        autocomplete={autocomplete}
        readOnly={readonly}
        value={common.value}
        onInput={(event) => common.onInput(event.currentTarget.value)}
      />
    </Frame>
  );
}

export function TextArea({ rows, ...common }: Common & { rows: number }) {
  return (
    <Frame {...common}>
      <textarea
        {...describe(common)}
        rows={rows}
        value={common.value}
        onInput={(event) => common.onInput(event.currentTarget.value)}
      />
    </Frame>
  );
}

/** A password that can be shown while it is typed; a new one with its rules, each ticked off as it is met. */
export function PasswordField({ isNew, ...common }: Common & { isNew: boolean }) {
  const [isShown, setShown] = useState(false);
  const props = { ...common, hint: isNew ? <PasswordRules password={common.value} /> : undefined };
  return (
    <Frame {...props}>
      <div class="password">
        <input
          {...describe(props)}
          {...(isShown ? inputTypes.text : ({ type: 'password' } as const))}
          autocomplete={isNew ? 'new-password' : 'current-password'}
          autocapitalize="none"
          spellcheck={false}
          value={props.value}
          onInput={(event) => props.onInput(event.currentTarget.value)}
        />
        <button type="button" class="quiet" aria-pressed={isShown} onClick={() => setShown(!isShown)}>
          Show<span class="unseen"> what is typed</span>
        </button>
      </div>
    </Frame>
  );
}

function PasswordRules({ password }: { password: string }) {
  const missing = passwordRules.filter((rule) => !rule.isMet(password));
  return (
    <>
      <p>It needs:</p>
      <ul class="rules">
        {passwordRules.map((rule) => (
          <li key={rule.label} data-met={!missing.includes(rule)}>
            {rule.label}
            <span class="unseen">{missing.includes(rule) ? '' : ' (met)'}</span>
          </li>
        ))}
      </ul>
      {/* Read out as the list changes; the list itself is read when the field is entered. */}
      <p class="unseen" role="status">
        {password === '' ? '' : summary(missing.map(({ label }) => label))}
      </p>
    </>
  );
}

const summary = (missing: string[]) =>
  missing.length === 0 ? 'Every rule is met.' : `Still missing: ${missing.join(', ')}.`;
