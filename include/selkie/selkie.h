/* Selkie: liquids and soft matter. The whole public interface. */
#ifndef SELKIE_SELKIE_H
#define SELKIE_SELKIE_H

#include <selkie/scene.h>
#include <selkie/status.h>
#include <selkie/version.h>
#include <selkie/world.h>
#include <selkie/output.h>

#endif
