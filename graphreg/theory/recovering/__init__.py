"""At which strengths given clusters are recovered, and how well."""
