import { textIfAny } from '../../../../server/shared/texts/template.ts';
import { text } from '../../language/texts.ts';

/** An error of a later release has no text here. */
export const errorText = (error: string | null | undefined): string =>
  error ? (textIfAny(text, `webhooks.errors.${error}`) ?? error) : '';
