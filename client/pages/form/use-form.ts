import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { type Refusal, refusalIn } from '../api.ts';
import { time } from '../language/format.ts';
import { text } from '../language/texts.ts';
import { keepDraft, readDraft } from '../session/draft.ts';

/** Where an error is shown: at a field, or for the whole form. */
export interface Problem<Name extends string> {
  field?: Name;
  message: ComponentChildren;
}

export interface FormOptions<Name extends string> {
  initial: Record<Name, string>;
  /** The messages for empty fields. */
  required?: Partial<Record<NoInfer<Name>, string>>;
  /** The messages for invalid values, by field. */
  check?: (values: Record<NoInfer<Name>, string>) => Partial<Record<NoInfer<Name>, string>>;
  /** True on a page for one field: it has the focus from the start. */
  isFocused?: boolean;
  /** Keeps and restores the text of these fields. */
  draft?: { key: string; names: NoInfer<Name>[] };
  /** Resolves to new values of the fields, if they differ from the typed ones. */
  send(values: Record<NoInfer<Name>, string>): Promise<Record<NoInfer<Name>, string> | undefined>;
  /** A message of this form for an error. */
  explain?: (refusal: Refusal) => Problem<NoInfer<Name>> | undefined;
}

export type FieldState = {
  name: string;
  value: string;
  error: ComponentChildren;
  onInput(value: string): void;
};

/** The state of a form: values, submission and errors. An error focuses the first wrong field. */
export function useForm<Name extends string>({
  initial,
  required,
  check,
  isFocused = false,
  draft,
  send,
  explain,
}: FormOptions<Name>) {
  const [values, setValues] = useState<Record<Name, string>>(() => ({ ...initial, ...kept(draft) }));
  const [errors, setErrors] = useState<Partial<Record<Name, ComponentChildren>>>({});
  const [problem, setProblem] = useState<ComponentChildren>();
  const [isBusy, setBusy] = useState(false);
  const [refusals, setRefusals] = useState(0);
  const element = useRef<HTMLFormElement>(null);

  useEffect(() => {
    if (isFocused) element.current?.querySelector('input')?.focus();
  }, []);

  // Moves the focus once per failed attempt, not when an error disappears.
  useLayoutEffect(() => {
    element.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [refusals]);

  const refuse = (found: Partial<Record<Name, ComponentChildren>>) => {
    setErrors(found);
    setRefusals((count) => count + 1);
    return Object.keys(found).length > 0;
  };

  const submit = async () => {
    if (isBusy) return;
    setProblem(undefined);
    if (refuse({ ...check?.(values), ...empty(values, required) })) return;
    setBusy(true);
    try {
      const stored = await send(values);
      // What was typed since stays.
      if (stored) setValues((current) => ({ ...stored, ...changed(current, values) }));
    } catch (error) {
      const refusal = refusalIn(error);
      const own = explain?.(refusal);
      if (own?.field) refuse({ [own.field]: own.message } as Partial<Record<Name, ComponentChildren>>);
      else if (own || !refuse(messagesIn(refusal, values))) setProblem(own?.message ?? sentenceFor(refusal));
    } finally {
      setBusy(false);
    }
  };

  return {
    values,
    isBusy,
    /** The props of `Form`. */
    form: {
      element,
      problem,
      onSubmit(event: Event) {
        event.preventDefault();
        void submit();
      },
    },
    field: (name: Name): FieldState => ({
      name,
      value: values[name],
      error: errors[name],
      onInput(value) {
        setValues((current) => ({ ...current, [name]: value }));
        setErrors((current) => ({ ...current, [name]: undefined }));
        if (draft?.names.includes(name)) keepDraft(draft.key, { [name]: value });
      },
    }),
  };
}

function kept<Name extends string>(draft: FormOptions<Name>['draft']): Partial<Record<Name, string>> {
  if (!draft) return {};
  const read = readDraft(draft.key);
  const entries = draft.names.filter((name) => name in read).map((name) => [name, read[name]]);
  return Object.fromEntries(entries);
}

/** The values of `current` that differ from those of `before`. */
function changed<Name extends string>(current: Record<Name, string>, before: Record<Name, string>) {
  const entries = Object.entries(current).filter(([name, value]) => value !== before[name as Name]);
  return Object.fromEntries(entries) as Partial<Record<Name, string>>;
}

function empty<Name extends string>(values: Record<Name, string>, required: FormOptions<Name>['required'] = {}) {
  const entries = Object.entries(required).filter(([name]) => values[name as Name].trim() === '');
  return Object.fromEntries(entries) as Partial<Record<Name, string>>;
}

/** The errors of this form's fields. */
function messagesIn<Name extends string>({ details }: Refusal, values: Record<Name, string>) {
  const entries = Object.entries(details).filter(([name]) => name in values);
  return Object.fromEntries(entries) as Partial<Record<Name, string>>;
}

/** The message for an error; for a limit, with the time of the next attempt. */
export const sentenceFor = ({ code, message, retryAt }: Refusal): string =>
  code === 'RATE_LIMITED' && retryAt ? text('common.rateLimited', { time: time(retryAt) }) : message;
