import { useState } from 'preact/hooks';
import { type FormOptions, useForm } from '../form/use-form.ts';

/**
 * The parameters of the mailed link. The shell moves them from the URL into this history entry of the tab, so that the
 * token is in no request, no bookmark and not on the screen, and survives a reload.
 */
export function mailedLink(): URLSearchParams {
  const state: unknown = history.state;
  const isOurs = typeof state === 'object' && state !== null && 'mailedLink' in state;
  return new URLSearchParams(isOurs ? String(state.mailedLink) : '');
}

interface Options<Name extends string, Outcome> extends Omit<FormOptions<Name>, 'send'> {
  /** Uses the token. */
  send(token: string, values: Record<NoInfer<Name>, string>): Promise<Outcome>;
}

/**
 * The form of a page opened by a mailed link. Opening the page changes nothing, because mail scanners open links;
 * submitting does, with the result in `outcome`. `isRefused`: the token is missing or refused.
 */
export function useMailedLink<Name extends string, Outcome extends object>({
  send,
  explain,
  ...options
}: Options<Name, Outcome>) {
  const token = mailedLink().get('token') ?? '';
  const [isRefused, setRefused] = useState(token === '');
  const [outcome, setOutcome] = useState<Outcome>();
  const form = useForm({
    ...options,
    async send(values) {
      setOutcome(await send(token, values));
      return undefined;
    },
    explain(refusal) {
      if (refusal.code === 'INVALID_TOKEN') setRefused(true);
      return explain?.(refusal);
    },
  });
  return { ...form, token, isRefused, outcome };
}
