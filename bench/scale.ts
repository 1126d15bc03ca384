// Owns: the figures of what a handoff costs, and of how that grows. Must not: measure; each of bench/scale/ measures one thing.
import type { Figure } from "./report.ts";
import { connectionFigures } from "./scale/connections.ts";
import { listenerFigures } from "./scale/listeners.ts";
import { phaseFigures } from "./scale/phases.ts";
import { resourceFigures } from "./scale/resources.ts";
import { serviceFigures } from "./scale/services.ts";

export async function scaleFigures(tell: (text: string) => void): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const part of [phaseFigures, resourceFigures, listenerFigures, connectionFigures, serviceFigures]) {
    figures.push(...await part(tell));
  }
  return figures;
}
